// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/cluster/cluster_messages.h"
#include "rendezvous/head/head_job.h"
#include "rendezvous/head/place_job.h"
#include "rendezvous/head/room_list.h"

namespace hlaunch {

// A host, as the head knows and keeps it. A value.
struct HeadHost {
  std::string name;
  std::optional<HostFacts> facts;  // As it told last; unset: it has never told.
  std::string drained;             // Why; empty: it is not.
  int64_t stop_ms = 0;             // When what runs there is stopped; 0: it may go on.
  int64_t seen_ms = 0;             // When it was last heard of; kept as 0 while it is there.

  // What is not kept:
  bool connected = false;
  bool told_facts = false;      // Since it came.
  bool told_all = false;        // All parts that are on it.
  std::set<uint64_t> told;      // Jobs with such a part.
  std::set<uint64_t> unwanted;  // Jobs of which a part lives there that the head has given up.

  struct Held {
    std::string kind;
    std::vector<int> devices;
    int slots = 0;
    bool exclusive = false;
  };
  std::map<uint64_t, Held> held;  // By job.

  bool ready() const { return connected && told_facts && told_all; }
};

// The hosts of a cluster, who is there, and what of them is held by which job. It does not know
// what jobs are.
//
// Belongs to one thread.
class HostBook {
 public:
  // `wall_ms`: now. Those that were there when they were kept have been away since then.
  HostBook(std::vector<HeadHost> kept, int64_t wall_ms);

  HeadHost* Find(const std::string& name);
  const HeadHost* Find(const std::string& name) const;
  // In the order of their names' bytes.
  const std::map<std::string, HeadHost>& all() const { return hosts_; }

  // Errors:
  //   ResourceExhausted - there are as many hosts as a cluster may have.
  absl::Status Came(const std::string& name, int64_t wall_ms);
  void Left(const std::string& name, int64_t wall_ms);
  // Returns whether anything is another than before.
  bool TakeFacts(HeadHost& host, HostFacts facts);
  void Drain(HeadHost& host, std::string reason, int64_t stop_ms);  // Empty: not any more.
  void Remove(const std::string& name);

  void Hold(const HeadJob& job, const HeadPart& part);
  void Release(uint64_t job, const std::string& name);

  // By name, node9 before node10; those of the second as EmptyRoomOf has them. Only what has
  // changed since the last call is made anew.
  const std::vector<HostRoom>& Rooms() const;
  const std::vector<HostRoom>& EmptyRooms() const;
  std::vector<HostView> Views() const;
  // Another number whenever hosts are there that were not, or have what they had not, or may be
  // used that could not, whoever holds what of them.
  uint64_t capacity() const { return capacity_; }
  // Whoever changes a host by Find, so that more or less can be placed there, says so.
  void CapacityChanged(const HeadHost& host);
  // What is kept of any host is another than when this was last called.
  bool TakeChanged();

 private:
  void RefreshRooms() const;

  std::map<std::string, HeadHost> hosts_;
  mutable std::set<std::string> stale_;  // The hosts that the next two have as they were.
  mutable RoomList rooms_, empty_rooms_;
  uint64_t capacity_ = 1;
  bool changed_ = false;
};

// What of the host is there for jobs. Pure.
HostRoom RoomOf(const HeadHost& host);
// The same, if it were there and open, and nobody held anything of it. Pure.
HostRoom EmptyRoomOf(const HeadHost& host);
// `room`: of the host. Pure.
HostView ViewOf(const HeadHost& host, const HostRoom& room);

}  // namespace hlaunch
