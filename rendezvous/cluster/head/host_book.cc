// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/host_book.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/release.h"
#include "proto/base/wall_time.h"

namespace hlaunch {
namespace {

// Returns why the connected host can take no part; empty if it can.
std::string WhyUnfit(const HeadHost& host) {
  if (!host.facts) return "";
  if (host.facts->protocol < kClusterProtocol - 1 || host.facts->protocol > kClusterProtocol + 1) {
    return absl::StrCat("has hlaunch ", host.facts->version, ", the head has ", kRelease,
                        ": they do not understand each other; update the older one");
  }
  std::string too_far = WhyReleaseIsTooFar(host.facts->version, "the head", kRelease);
  if (!too_far.empty()) return too_far;
  if (!host.facts->trouble.empty()) return host.facts->trouble;
  if (host.unwanted.empty()) return "";
  return absl::StrCat("still has a part of job ", *host.unwanted.begin(), ", which is given up");
}

std::string WhyClosed(const HeadHost& host) {
  if (!host.drained.empty()) return absl::StrCat("is drained: ", host.drained);
  if (!host.connected) return absl::StrCat("is away since ", WallTime(host.seen_ms));
  if (!host.ready()) return "is telling its jobs";
  const std::string unfit = WhyUnfit(host);
  return unfit.empty() ? "" : absl::StrCat("is unfit: ", unfit);
}

// Removes from the host's room what a job holds there.
void TakeHeld(const HeadHost::Held& held, HostRoom& room) {
  room.exclusive |= held.exclusive;
  room.slots_free = std::max(0, room.slots_free - held.slots);
  const auto kind = room.kinds.find(held.kind);
  if (kind == room.kinds.end()) return;
  const std::set<int> devices(held.devices.begin(), held.devices.end());
  std::erase_if(kind->second.free, [&](int id) { return devices.contains(id); });
}

// Returns the kind of most of the host's devices; empty if it has none.
std::string MainKind(const HostRoom& room) {
  std::string main;
  int most = 0;
  for (const auto& [name, kind] : room.kinds) {
    if (kind.all > most) main = name;
    most = std::max(most, kind.all);
  }
  return main;
}

// "free", "busy" or "full".
const char* Use(const HostRoom& room, const HostView& view) {
  if (!room.used) return "free";
  const int left = view.device_kind.empty() ? view.slots_free : view.devices_free;
  return room.exclusive || left == 0 ? "full" : "busy";
}

// Returns why the host is drained, and when jobs there are stopped.
std::string WhyDrained(const HeadHost& host) {
  if (host.stop_ms == 0) return host.drained;
  return absl::StrCat(host.drained, "; what still runs there at ", WallTime(host.stop_ms),
                      " is stopped");
}

void SayState(const HeadHost& host, const HostRoom& room, HostView& view) {
  const std::string unfit = WhyUnfit(host);
  view.why = WhyClosed(host);
  if (!host.connected) {
    view.state = "away";
    view.why = host.drained.empty() ? "" : absl::StrCat("drained: ", WhyDrained(host));
  } else if (!host.drained.empty()) {
    view.state = "drained";
    view.why = WhyDrained(host);
  } else if (!view.why.empty()) {
    view.state = "unfit";
    if (!unfit.empty()) view.why = unfit;
  } else {
    view.state = Use(room, view);
  }
}

}  // namespace

HostRoom RoomOf(const HeadHost& host) {
  HostRoom room = EmptyRoomOf(host);
  room.closed = WhyClosed(host);
  room.used = !host.held.empty();
  for (const auto& [job, held] : host.held) TakeHeld(held, room);
  return room;
}

HostRoom EmptyRoomOf(const HeadHost& host) {
  HostRoom room;
  room.name = host.name;
  if (!host.facts) return room;
  room.labels = host.facts->labels;
  room.slots = room.slots_free = host.facts->slots;
  for (const DeviceFact& device : host.facts->devices) {
    if (!device.fault.empty()) continue;
    KindRoom& kind = room.kinds[device.kind];
    ++kind.all;
    kind.free.push_back(device.id);
  }
  for (auto& [name, kind] : room.kinds) std::sort(kind.free.begin(), kind.free.end());
  return room;
}

HostView ViewOf(const HeadHost& host, const HostRoom& room) {
  HostView view;
  view.name = host.name;
  if (host.facts) view.version = host.facts->version;
  view.device_kind = MainKind(room);
  if (!view.device_kind.empty()) {
    const KindRoom& kind = room.kinds.at(view.device_kind);
    view.devices = kind.all;
    view.devices_free = static_cast<int>(kind.free.size());
  }
  view.slots = room.slots;
  view.slots_free = room.slots_free;
  view.labels = room.labels;
  for (const auto& [job, held] : host.held) view.jobs.push_back(job);
  view.seen_ms = host.connected ? 0 : host.seen_ms;
  view.stop_ms = host.stop_ms;
  SayState(host, room, view);
  return view;
}

HostBook::HostBook(std::vector<HeadHost> kept, int64_t wall_ms) {
  for (HeadHost& host : kept) {
    const std::string name = host.name;
    if (host.seen_ms == 0) host.seen_ms = wall_ms;
    hosts_[name] = std::move(host);
    stale_.insert(name);
  }
}

HeadHost* HostBook::Find(const std::string& name) {
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? nullptr : &found->second;
}

const HeadHost* HostBook::Find(const std::string& name) const {
  const auto found = hosts_.find(name);
  return found == hosts_.end() ? nullptr : &found->second;
}

absl::Status HostBook::Came(const std::string& name, int64_t wall_ms) {
  if (!hosts_.contains(name) && hosts_.size() >= kMaxClusterHosts) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this cluster has ", hosts_.size(), " hosts, which is as many as it may"));
  }
  const bool is_new = !hosts_.contains(name);
  HeadHost& host = hosts_[name];
  host.name = name;
  host.connected = true;
  host.told_facts = host.told_all = false;
  host.told.clear();
  host.unwanted.clear();
  host.seen_ms = wall_ms;
  changed_ |= is_new;
  CapacityChanged(host);
  return absl::OkStatus();
}

void HostBook::Left(const std::string& name, int64_t wall_ms) {
  HeadHost* host = Find(name);
  if (host == nullptr) return;
  host->connected = host->told_facts = host->told_all = false;
  host->seen_ms = wall_ms;  // Stored with the next change, since it is only for people.
  CapacityChanged(*host);
}

bool HostBook::TakeFacts(HeadHost& host, HostFacts facts) {
  const bool same = host.facts && ToJson(*host.facts) == ToJson(facts);
  if (same && host.told_facts) return false;
  host.facts = std::move(facts);
  host.told_facts = true;
  changed_ |= !same;
  CapacityChanged(host);
  return true;
}

void HostBook::Drain(HeadHost& host, std::string reason, int64_t stop_ms) {
  host.stop_ms = reason.empty() ? 0 : stop_ms;
  host.drained = std::move(reason);
  changed_ = true;
  CapacityChanged(host);
}

void HostBook::Remove(const std::string& name) {
  hosts_.erase(name);
  stale_.insert(name);
  changed_ = true;
  ++capacity_;
}

void HostBook::Hold(const HeadJob& job, const HeadPart& part, int64_t wall_ms) {
  const bool is_new = !hosts_.contains(part.host);
  HeadHost& host = hosts_[part.host];
  host.name = part.host;
  if (is_new) host.seen_ms = wall_ms;
  host.held[job.number] = {job.device_kind, part.devices, part.slots, job.request.exclusive};
  stale_.insert(part.host);
}

void HostBook::Release(uint64_t job, const std::string& name) {
  HeadHost* host = Find(name);
  if (host == nullptr) return;
  host->held.erase(job);
  stale_.insert(name);
}

void HostBook::CapacityChanged(const HeadHost& host) {
  ++capacity_;
  stale_.insert(host.name);
}

void HostBook::RefreshRooms() const {
  if (stale_.size() > rooms_.all().size() / 4) {  // Single Puts would move each room many times.
    std::vector<HostRoom> rooms, empty;
    for (const auto& [name, host] : hosts_) {
      rooms.push_back(RoomOf(host));
      empty.push_back(EmptyRoomOf(host));
    }
    rooms_.Fill(std::move(rooms));
    empty_rooms_.Fill(std::move(empty));
    return stale_.clear();
  }
  for (const std::string& name : std::exchange(stale_, {})) {
    if (const HeadHost* host = Find(name)) {
      rooms_.Put(RoomOf(*host));
      empty_rooms_.Put(EmptyRoomOf(*host));
    } else {
      rooms_.Erase(name);
      empty_rooms_.Erase(name);
    }
  }
}

const std::vector<HostRoom>& HostBook::Rooms() const {
  RefreshRooms();
  return rooms_.all();
}

const std::vector<HostRoom>& HostBook::EmptyRooms() const {
  RefreshRooms();
  return empty_rooms_.all();
}

std::vector<HostView> HostBook::Views() const {
  std::vector<HostView> views;
  views.reserve(hosts_.size());
  for (const HostRoom& room : Rooms()) views.push_back(ViewOf(hosts_.at(room.name), room));
  return views;
}

bool HostBook::TakeChanged() { return std::exchange(changed_, false); }

}  // namespace hlaunch
