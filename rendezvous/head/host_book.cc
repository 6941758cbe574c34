// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/head/host_book.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/release.h"
#include "proto/base/wall_time.h"
#include "rendezvous/round/quorum.h"

namespace hlaunch {
namespace {

// Why the host can take no part, though it is connected; empty: it can.
std::string WhyUnfit(const HeadHost& host) {
  if (!host.facts) return "";
  if (host.facts->protocol < kClusterProtocol - 1 || host.facts->protocol > kClusterProtocol + 1) {
    return absl::StrCat("has hlaunch ", host.facts->version, ", which is too far from the head's");
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

std::map<std::string, std::set<int>> HeldDevices(const HeadHost& host) {
  std::map<std::string, std::set<int>> devices;
  for (const auto& [job, held] : host.held) {
    devices[held.kind].insert(held.devices.begin(), held.devices.end());
  }
  return devices;
}

void AddDevices(const HeadHost& host, HostRoom& room) {
  std::map<std::string, std::set<int>> held = HeldDevices(host);
  for (const DeviceFact& device : host.facts->devices) {
    if (!device.fault.empty()) continue;
    KindRoom& kind = room.kinds[device.kind];
    ++kind.all;
    if (!held[device.kind].contains(device.id)) kind.free.push_back(device.id);
  }
  for (auto& [name, kind] : room.kinds) std::sort(kind.free.begin(), kind.free.end());
}

int HeldSlots(const HeadHost& host) {
  int slots = 0;
  for (const auto& [job, held] : host.held) slots += held.slots;
  return slots;
}

// The kind of most of its devices; empty: it has none.
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

void SayState(const HeadHost& host, const HostRoom& room, HostView& view) {
  const std::string unfit = WhyUnfit(host);
  view.why = WhyClosed(host);
  if (!host.connected) {
    view.state = "away";
    view.why = host.drained.empty() ? "" : absl::StrCat("drained: ", host.drained);
  } else if (!host.drained.empty()) {
    view.state = "drained";
    view.why = host.drained;
  } else if (!view.why.empty()) {
    view.state = "unfit";
    if (!unfit.empty()) view.why = unfit;
  } else {
    view.state = Use(room, view);
  }
}

}  // namespace

HostRoom RoomOf(const HeadHost& host) {
  HostRoom room;
  room.name = host.name;
  room.closed = WhyClosed(host);
  room.used = !host.held.empty();
  for (const auto& [job, held] : host.held) room.exclusive |= held.exclusive;
  if (!host.facts) return room;
  room.labels = host.facts->labels;
  room.slots = host.facts->slots;
  room.slots_free = std::max(0, room.slots - HeldSlots(host));
  AddDevices(host, room);
  return room;
}

HostRoom EmptyRoomOf(const HeadHost& host) {
  HeadHost empty;
  empty.name = host.name;
  empty.facts = host.facts;
  HostRoom room = RoomOf(empty);
  room.closed.clear();
  return room;
}

HostView ViewOf(const HeadHost& host) {
  const HostRoom room = RoomOf(host);
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
  SayState(host, room, view);
  return view;
}

HostBook::HostBook(std::vector<HeadHost> kept, int64_t wall_ms) {
  for (HeadHost& host : kept) {
    const std::string name = host.name;
    if (host.seen_ms == 0) host.seen_ms = wall_ms;
    hosts_[name] = std::move(host);
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
  ++capacity_;
  return absl::OkStatus();
}

void HostBook::Left(const std::string& name, int64_t wall_ms) {
  HeadHost* host = Find(name);
  if (host == nullptr) return;
  host->connected = host->told_facts = host->told_all = false;
  host->seen_ms = wall_ms;  // Kept with the next change: it is only for people.
  ++capacity_;
}

bool HostBook::TakeFacts(HeadHost& host, HostFacts facts) {
  const bool same = host.facts && ToJson(*host.facts) == ToJson(facts);
  if (same && host.told_facts) return false;
  host.facts = std::move(facts);
  host.told_facts = true;
  changed_ |= !same;
  ++capacity_;
  return true;
}

void HostBook::Drain(HeadHost& host, std::string reason) {
  host.drained = std::move(reason);
  changed_ = true;
  ++capacity_;
}

void HostBook::Remove(const std::string& name) {
  hosts_.erase(name);
  changed_ = true;
  ++capacity_;
}

void HostBook::Hold(const HeadJob& job, const HeadPart& part) {
  HeadHost& host = hosts_[part.host];
  host.name = part.host;
  host.held[job.number] = {job.device_kind, part.devices, part.slots, job.request.exclusive};
}

void HostBook::Release(uint64_t job, const std::string& name) {
  if (HeadHost* host = Find(name)) host->held.erase(job);
}

std::vector<HostRoom> HostBook::Rooms() const {
  std::vector<HostRoom> rooms;
  rooms.reserve(hosts_.size());
  for (const auto& [name, host] : hosts_) rooms.push_back(RoomOf(host));
  return rooms;
}

std::vector<HostView> HostBook::Views() const {
  std::vector<HostView> views;
  views.reserve(hosts_.size());
  for (const auto& [name, host] : hosts_) views.push_back(ViewOf(host));
  std::sort(views.begin(), views.end(),
            [](const HostView& a, const HostView& b) { return NaturalLess(a.name, b.name); });
  return views;
}

bool HostBook::TakeChanged() { return std::exchange(changed_, false); }

}  // namespace hlaunch
