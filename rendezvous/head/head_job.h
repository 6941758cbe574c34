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

// Both clocks at one moment: what must last so long, and what people are told. A value.
struct HeadTime {
  Instant now;
  int64_t wall_ms = 0;  // Since 1970.
};

// One host's part of a job, as the head knows it. A value.
struct HeadPart {
  int node_rank = 0;
  std::string host;
  std::string boot_id;       // Of the host, when the part was given to it.
  std::vector<int> devices;  // Held, by id.
  int slots = 0;             // Held, where it has no devices.
  int workers = 0;
  PartState state = PartState::kStarting;
  int signalled = 0;  // Its host has taken the order to end it with this signal.
  // It was told to leave its host, which has not taken the order that it may stay after all.
  bool is_leaving = false;
  std::string trouble;  // Of a part that is lost or failed.
  std::optional<int> exit_code;
  uint64_t leave_orders = 0;  // To leave or to stay, in this life of the head. Not kept.

  // Nothing of it lives any more.
  bool closed() const { return state != PartState::kStarting && state != PartState::kRunning; }
};

// A job, as the head knows and keeps it. A value.
struct HeadJob {
  uint64_t number = 0;
  std::string user;
  uint32_t uid = 0;
  JobRequest request;  // Of a job that has ended without what only its start needs.
  ClusterJobState state = ClusterJobState::kWaiting;
  std::string why;              // What it waits for, or how it ended.
  std::string told_to_end;      // Why it was told to end; empty: it was not.
  int signal = 0;               // With which signal: SIGTERM or SIGKILL.
  int grace_s = 30;             // How long after SIGTERM it may take to end.
  std::string token;            // Secret: of its own rendezvous.
  std::string meeting;          // Where that is; empty: not known (yet), or none is needed.
  std::string device_kind;      // Empty: slots.
  int spares = 0;               // The last so many parts stand by.
  std::vector<HeadPart> parts;  // By node rank.
  int64_t submitted_ms = 0, started_ms = 0, ended_ms = 0;
  std::optional<int> exit_code;
  int round = 0;
  int restarts = 0;
  double goodput = -1;

  // What is not kept:
  uint64_t version = 0;
  uint64_t behind = 0;  // The job that has its turn before; 0: none.
  uint64_t hopeless_with =
      0;  // The hosts (HostBook::capacity) that can never have it; 0: some may.
  std::optional<Instant> kill_at;

  bool meets() const { return parts.size() > 1; }
  bool placed() const {
    return state != ClusterJobState::kWaiting && state != ClusterJobState::kEnded;
  }
};

// The part that is on `host`, or null.
HeadPart* PartOn(HeadJob& job, const std::string& host);
const HeadPart* PartOn(const HeadJob& job, const std::string& host);

}  // namespace hlaunch
