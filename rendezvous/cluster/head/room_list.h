// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/cluster/head/place_job.h"

namespace hlaunch {

// The hosts' rooms as PlaceJob takes them: by name, node9 before node10. A single room can be
// replaced. A value.
class RoomList {
 public:
  const std::vector<HostRoom>& all() const { return rooms_; }
  // Adds the room, or replaces the room of the same host.
  void Put(HostRoom room);
  void Erase(const std::string& host);
  // Replaces all rooms. `rooms` may be in any order.
  void Fill(std::vector<HostRoom> rooms);

 private:
  std::vector<HostRoom>::iterator From(const std::string& host);

  std::vector<HostRoom> rooms_;
};

}  // namespace hlaunch
