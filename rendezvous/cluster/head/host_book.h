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
#include "rendezvous/cluster/head/head_job.h"
#include "rendezvous/cluster/head/place_job.h"
#include "rendezvous/cluster/head/room_list.h"

namespace hlaunch {

// A host, as the head knows and stores it. A value.
struct HeadHost {
  std::string name;
  std::optional<HostFacts> facts;  // As last reported; unset if the host never has.
  std::string drained;             // Why the host is drained; empty if it is not.
  int64_t stop_ms = 0;             // When jobs that still run there are stopped; 0: never.
  int64_t seen_ms = 0;             // When the host was last heard of; stored as 0 while connected.

  // These fields are not stored:
  bool connected = false;
  bool told_facts = false;      // The host has reported its facts since it connected.
  bool told_all = false;        // The host has reported all parts that it has.
  std::set<uint64_t> told;      // Jobs in `held` whose part the host has reported.
  std::set<uint64_t> unwanted;  // Jobs whose part lives there though the head has given it up.

  struct Held {
    std::string kind;
    std::vector<int> devices;
    int slots = 0;
    bool exclusive = false;
  };
  std::map<uint64_t, Held> held;  // By job.

  bool ready() const { return connected && told_facts && told_all; }
};

// The hosts of a cluster: which of them are connected, and what each job holds of them. The book
// has no jobs, only their numbers.
//
// Belongs to one thread.
class HostBook {
 public:
  // `wall_ms` is the current time. Hosts that were stored as connected count as away since then.
  HostBook(std::vector<HeadHost> kept, int64_t wall_ms);

  HeadHost* Find(const std::string& name);
  const HeadHost* Find(const std::string& name) const;
  // In the order of their names' bytes.
  const std::map<std::string, HeadHost>& all() const { return hosts_; }

  // Errors:
  //   ResourceExhausted - there are as many hosts as a cluster may have.
  absl::Status Came(const std::string& name, int64_t wall_ms);
  void Left(const std::string& name, int64_t wall_ms);
  // Returns true if the facts have changed, or are the first since the host connected.
  bool TakeFacts(HeadHost& host, HostFacts facts);
  void Drain(HeadHost& host, std::string reason,
             int64_t stop_ms);  // An empty reason ends it.
  void Remove(const std::string& name);

  // A host that the book lacks is added, and counts as away since `wall_ms`: after a loss of power
  // a job may have been stored and its host not.
  void Hold(const HeadJob& job, const HeadPart& part, int64_t wall_ms);
  void Release(uint64_t job, const std::string& name);

  // Return the rooms of all hosts by name, node9 before node10: Rooms as of RoomOf, EmptyRooms as
  // of EmptyRoomOf. The rooms are cached and computed again only after changes.
  const std::vector<HostRoom>& Rooms() const;
  const std::vector<HostRoom>& EmptyRooms() const;
  std::vector<HostView> Views() const;
  // Changes whenever a host comes or goes, or what it has or whether it may be used changes. It
  // does not depend on what jobs hold.
  uint64_t capacity() const { return capacity_; }
  // Must be called after a change of a host through Find that affects what can be placed there.
  void CapacityChanged(const HeadHost& host);
  // Returns true if the stored data of any host have changed since the last call.
  bool TakeChanged();

 private:
  void RefreshRooms() const;

  std::map<std::string, HeadHost> hosts_;
  mutable std::set<std::string> stale_;  // Hosts whose entries in the next two are out of date.
  mutable RoomList rooms_, empty_rooms_;
  uint64_t capacity_ = 1;
  bool changed_ = false;
};

// Returns what the host has for jobs, and what of it is free. Pure.
HostRoom RoomOf(const HeadHost& host);
// The same as if the host were connected and open and no job held anything of it. Pure.
HostRoom EmptyRoomOf(const HeadHost& host);
// `room` is the room of `host`. Pure.
HostView ViewOf(const HeadHost& host, const HostRoom& room);

}  // namespace hlaunch
