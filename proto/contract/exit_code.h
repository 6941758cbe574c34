// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// The exit status of `hlaunch`: a contract with scripts and schedulers, in manual/exit-codes.md.
//
// A worker's own failure comes through unchanged: the first failed worker's exit code, or
// 128 + the signal that ended it. 126 and 127 are as in a shell. hlaunch's own failures are
// 200 and up, which no signal reaches (128 + 64 = 192) and programs rarely use; 2 is what
// every command line tool says of a wrong option.
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;            // wrong option or value; nothing was started
inline constexpr int kExitNotExecutable = 126;  // the program is there and cannot be run
inline constexpr int kExitNotFound = 127;       // no such program or script
inline constexpr int kExitSignalBase = 128;     // + signal number
inline constexpr int kExitInternal = 200;       // a bug in hlaunch
inline constexpr int kExitBadEndpoint =
    201;  // the rendezvous' name does not resolve, nobody answers, or no listening there
inline constexpr int kExitPortInUse = 202;       // the endpoint's port belongs to someone else
inline constexpr int kExitRefused = 203;         // token, job id, nnodes … do not fit the job
inline constexpr int kExitJoinTimeout = 204;     // nodes did not come in time
inline constexpr int kExitRendezvousLost = 205;  // the rendezvous' host was not heard of any more
inline constexpr int kExitNodeLost = 206;        // a node of the job died or was cut off
inline constexpr int kExitAgentLost = 207;       // this node's agent or keeper was killed
inline constexpr int kExitNoResources = 208;     // fork, descriptors, memory, devices
inline constexpr int kExitPreflight = 209;       // too few nodes are fit to run together

// hlaunch's own failures; kExitLastOwn follows the last row above.
inline constexpr int kExitFirstOwn = kExitInternal;
inline constexpr int kExitLastOwn = kExitPreflight;

}  // namespace hlaunch
