// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/envelope.h"

namespace hlaunch {

// One moment by both clocks: `now` for durations, `wall_ms` for times that people see. A value.
struct HeadTime {
  Instant now;
  int64_t wall_ms = 0;  // Since 1970.
};

// One host's part of a job, as the head knows it. A value.
struct HeadPart {
  int node_rank = 0;
  std::string host;
  std::string boot_id;       // The host's boot ID when the part was placed there.
  std::vector<int> devices;  // The ids of the devices that the part holds.
  int slots = 0;             // The slots that it holds if it has no devices.
  int workers = 0;
  PartState state = PartState::kStarting;
  int signalled = 0;  // The host has accepted the order to send this signal; 0: none.
  // The part was told to leave its host, and the host has not yet accepted an order that lets it
  // stay.
  bool is_leaving = false;
  std::string trouble;  // Why the part was lost, failed or not started.
  std::optional<int> exit_code;
  uint64_t leave_orders = 0;  // Orders to leave or to stay since the head's start. Not stored.

  // True once the part has ended, was lost or has failed.
  bool closed() const { return state != PartState::kStarting && state != PartState::kRunning; }
};

// A job, as the head knows and stores it. A value.
struct HeadJob {
  uint64_t number = 0;
  std::string user;
  uint32_t uid = 0;
  JobRequest request;  // After the job's end without what only its start needs.
  ClusterJobState state = ClusterJobState::kWaiting;
  std::string why;              // What the job waits for, or how it ended.
  std::string told_to_end;      // Why the job was told to end; empty if it was not.
  int signal = 0;               // The signal that ends it: SIGTERM or SIGKILL; 0: none yet.
  int grace_s = 30;             // How long the job may take to end after SIGTERM.
  std::string token;            // Secret: the token of the job's own rendezvous.
  std::string meeting;          // Where that rendezvous is; empty: not known (yet) or not needed.
  std::string device_kind;      // Empty if the job uses slots.
  int spares = 0;               // This many parts, the last ones, stand by.
  std::vector<HeadPart> parts;  // By node rank.
  int64_t submitted_ms = 0, started_ms = 0, ended_ms = 0;
  std::optional<int> exit_code;
  int round = 0;
  int restarts = 0;
  double goodput = -1;

  // These fields are not stored:
  uint64_t version = 0;
  uint64_t behind = 0;         // The job that this one waits behind; 0: none.
  uint64_t hopeless_with = 0;  // HostBook::capacity() for which no hosts could run it; 0: some may.
  std::optional<Instant> kill_at;

  bool meets() const { return parts.size() > 1; }
  bool placed() const {
    return state != ClusterJobState::kWaiting && state != ClusterJobState::kEnded;
  }
};

// Returns the part on `host`, or null.
HeadPart* PartOn(HeadJob& job, const std::string& host);
const HeadPart* PartOn(const HeadJob& job, const std::string& host);

}  // namespace hlaunch
