// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/head/place_job.h"

namespace hlaunch {

// Hosts' rooms as PlaceJob takes them: by name, node9 before node10. One of them changes without
// the others. A value.
class RoomList {
 public:
  const std::vector<HostRoom>& all() const { return rooms_; }
  // In the place of what it had of this host.
  void Put(HostRoom room);
  void Erase(const std::string& host);
  // Takes these instead of all that it had, in whatever order they come.
  void Fill(std::vector<HostRoom> rooms);

 private:
  std::vector<HostRoom>::iterator From(const std::string& host);

  std::vector<HostRoom> rooms_;
};

}  // namespace hlaunch
