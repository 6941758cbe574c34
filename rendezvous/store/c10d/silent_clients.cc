// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/silent_clients.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxKnown = 65'536;  // Addresses; a job has no more nodes.

}  // namespace

SilentClients::Line& SilentClients::LineOf(const StoreAddress& source) {
  return known_.count(source) > 0 ? others_ : strangers_;
}

void SilentClients::Came(Id client, const StoreAddress& source, Instant now) {
  silent_[client] = {source, now};
  Line& line = LineOf(source);
  line.insert({now, client});
  if (&line == &strangers_) by_source_[source].insert({now, client});
}

void SilentClients::Spoke(Id client) {
  const auto it = silent_.find(client);
  if (it == silent_.end()) return;
  const StoreAddress source = it->second.source;
  Gone(client);
  if (known_.size() >= kMaxKnown || !known_.insert(source).second) return;
  const auto siblings = by_source_.find(source);
  if (siblings == by_source_.end()) return;
  for (const auto& one : siblings->second) strangers_.erase(one);
  others_.merge(siblings->second);
  by_source_.erase(siblings);
}

void SilentClients::Gone(Id client) {
  const auto it = silent_.find(client);
  if (it == silent_.end()) return;
  const auto& [source, since] = it->second;
  Line& line = LineOf(source);
  line.erase({since, client});
  if (&line == &strangers_) {
    const auto of_source = by_source_.find(source);
    of_source->second.erase({since, client});
    if (of_source->second.empty()) by_source_.erase(of_source);
  }
  silent_.erase(it);
}

void SilentClients::Clear() {
  silent_.clear();
  known_.clear();
  strangers_.clear();
  others_.clear();
  by_source_.clear();
}

std::vector<SilentClients::Id> SilentClients::TakeSuperfluous(Instant now) {
  std::vector<Id> superfluous;
  const auto take = [&](const Line& line) {
    superfluous.push_back(line.begin()->second);
    Gone(superfluous.back());
  };
  while (now >= next()) take(strangers_);
  while (silent_.size() > limits_.all) take(strangers_.empty() ? others_ : strangers_);
  return superfluous;
}

Instant SilentClients::next() const {
  if (strangers_.size() <= limits_.strangers) return Instant::max();
  return strangers_.begin()->first + limits_.patience;
}

}  // namespace hlaunch
