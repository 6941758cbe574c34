// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// The exit status of `hlaunch`: a contract with scripts and schedulers, in manual/exit-codes.md.
//
// A worker's own failure comes through unchanged: the first failed worker's exit code, or
// 128 + the signal that ended it. 126 and 127 are as in a shell. 2 is what every command line tool
// returns for a wrong option. hlaunch's own failures have numbers that no signal reaches
// (128 + 64 = 192), that programs rarely use, and that systemd does not name: it counts from 200
// upwards, to 244 in release 252 and to 246 later. 253 is not used, since srun turns it into 1.
// A number that once had a meaning never gets another one.
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;            // wrong option or value; nothing was started
inline constexpr int kExitNotExecutable = 126;  // the program is there and cannot be run
inline constexpr int kExitNotFound = 127;       // no such program or script
inline constexpr int kExitSignalBase = 128;     // + signal number
inline constexpr int kExitInternal = 193;       // a bug in hlaunch
// A name (the rendezvous', --local-addr) does not resolve, nothing answers, or listening failed.
inline constexpr int kExitBadEndpoint = 194;
inline constexpr int kExitPortInUse = 195;       // another process has the endpoint's port
inline constexpr int kExitRefused = 196;         // token, job id, nnodes … do not fit the job
inline constexpr int kExitJoinTimeout = 197;     // nodes did not come in time
inline constexpr int kExitRendezvousLost = 198;  // the rendezvous' host was silent for too long
inline constexpr int kExitNodeLost = 199;        // a node of the job died or was cut off
inline constexpr int kExitNotStarted = 247;      // a host of --hosts could not be started
inline constexpr int kExitNoProgress = 248;      // restarts make no progress
inline constexpr int kExitNodeStopped = 249;     // another node of the job was stopped
inline constexpr int kExitAgentLost = 250;       // this node's agent or keeper was killed
inline constexpr int kExitNoResources = 251;     // fork, descriptors, memory, devices
inline constexpr int kExitPreflight = 252;       // too few nodes are fit to run together
inline constexpr int kExitTimeout = 254;         // the job took longer than --timeout

// hlaunch's own failures, in ascending order: the rows above from kExitInternal on.
inline constexpr int kOwnExitCodes[] = {
    kExitInternal,       kExitBadEndpoint, kExitPortInUse,  kExitRefused,    kExitJoinTimeout,
    kExitRendezvousLost, kExitNodeLost,    kExitNotStarted, kExitNoProgress, kExitNodeStopped,
    kExitAgentLost,      kExitNoResources, kExitPreflight,  kExitTimeout};

// Whether a process exits with this code because a signal ended it or asked it to end.
constexpr bool IsSignalExit(int exit_code) {
  return exit_code > kExitSignalBase && exit_code <= kExitSignalBase + 64;
}

}  // namespace hlaunch
