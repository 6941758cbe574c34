// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/room_list.h"

#include <algorithm>
#include <utility>

#include "rendezvous/round/values/quorum.h"

namespace hlaunch {

std::vector<HostRoom>::iterator RoomList::From(const std::string& host) {
  return std::lower_bound(
      rooms_.begin(), rooms_.end(), host,
      [](const HostRoom& room, const std::string& name) { return NaturalLess(room.name, name); });
}

void RoomList::Put(HostRoom room) {
  const auto at = From(room.name);
  if (at != rooms_.end() && at->name == room.name) {
    *at = std::move(room);
  } else {
    rooms_.insert(at, std::move(room));
  }
}

void RoomList::Erase(const std::string& host) {
  const auto at = From(host);
  if (at != rooms_.end() && at->name == host) rooms_.erase(at);
}

void RoomList::Fill(std::vector<HostRoom> rooms) {
  rooms_ = std::move(rooms);
  std::sort(rooms_.begin(), rooms_.end(),
            [](const HostRoom& a, const HostRoom& b) { return NaturalLess(a.name, b.name); });
}

}  // namespace hlaunch
