// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/key_space.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Makes `text` safe for messages: keys come from outside.
std::string Shown(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 100)), "'");
}

// `option` raises the limit; empty if none does.
absl::Status CheckLimit(absl::string_view what, size_t is, size_t limit, absl::string_view option) {
  if (is <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " is over the store's limit: ", is, ", at most ", limit,
                   option.empty() ? "" : "; raise it with ", option));
}

size_t EntryBytes(absl::string_view key, absl::string_view value) {
  return kEntryBytes + key.size() + value.size();
}

}  // namespace

absl::Status StoreLimits::CheckKey(size_t bytes) const {
  return CheckLimit("key length", bytes, key_bytes, by_option ? "--store-max-key" : "");
}
absl::Status StoreLimits::CheckValue(size_t bytes) const {
  return CheckLimit("value length", bytes, value_bytes, by_option ? "--store-max-value" : "");
}
absl::Status StoreLimits::CheckList(size_t keys) const {
  return CheckLimit("number of keys in a list", keys, list_keys, "");
}
absl::Status StoreLimits::CheckTotal(size_t bytes) const {
  return CheckLimit("the store with this value", bytes, total_bytes,
                    by_option ? "--store-max-total" : "");
}

std::optional<int64_t> ParseCounter(const std::string& value) {
  errno = 0;
  char* end = nullptr;
  const int64_t number = std::strtoll(value.c_str(), &end, 10);
  if (end == value.c_str() || errno == ERANGE) return std::nullopt;
  return number;
}

const std::string* KeySpace::Find(absl::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

bool KeySpace::Exists(absl::string_view key) const {
  return values_.contains(key) || QueueLength(key) > 0;
}

absl::Status KeySpace::Put(absl::string_view key, std::string value) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckKey(key.size()));
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckValue(value.size()));
  const std::string* old = Find(key);
  const size_t bytes =
      bytes_ + EntryBytes(key, value) - (old != nullptr ? EntryBytes(key, *old) : 0);
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckTotal(bytes));
  bytes_ = bytes;
  if (old == nullptr) ++shape_;
  values_.insert_or_assign(key, std::move(value));
  return absl::OkStatus();
}

absl::Status KeySpace::Set(absl::string_view key, std::string value) {
  HLAUNCH_RETURN_IF_ERROR(Put(key, std::move(value)));
  WakeAll(&for_keys_, key);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> KeySpace::Add(absl::string_view key, int64_t delta) {
  const std::string* old = Find(key);
  const std::optional<int64_t> before = old != nullptr ? ParseCounter(*old) : 0;
  if (!before.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot add to key ", Shown(key), ": its value is not a number"));
  }
  // Unsigned, so that it wraps around as PyTorch's does.
  const auto sum =
      static_cast<int64_t>(static_cast<uint64_t>(*before) + static_cast<uint64_t>(delta));
  HLAUNCH_RETURN_IF_ERROR(Set(key, absl::StrCat(sum)));
  return sum;
}

absl::StatusOr<std::string> KeySpace::CompareAndSet(absl::string_view key,
                                                    absl::string_view expected,
                                                    absl::string_view desired) {
  const std::string* old = Find(key);
  const bool matches = old != nullptr ? *old == expected : expected.empty();
  if (!matches) return old != nullptr ? *old : std::string(expected);
  HLAUNCH_RETURN_IF_ERROR(Set(key, std::string(desired)));
  return std::string(desired);
}

absl::Status KeySpace::Append(absl::string_view key, absl::string_view data) {
  auto it = values_.find(key);
  if (it == values_.end()) return Set(key, std::string(data));
  // Appends in place: a value built from many small pieces is not copied for each.
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckValue(it->second.size() + data.size()));
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckTotal(bytes_ + data.size()));
  it->second.append(data.data(), data.size());
  bytes_ += data.size();
  return absl::OkStatus();  // The key existed, so no client waits for it.
}

bool KeySpace::Delete(absl::string_view key) {
  auto it = values_.find(key);
  if (it == values_.end()) return false;
  bytes_ -= EntryBytes(it->first, it->second);
  values_.erase(it);
  ++shape_;
  return true;
}

bool KeySpace::Check(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return Exists(key); });
}

std::vector<std::string> KeySpace::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(values_.size());
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

absl::Status KeySpace::QueuePush(absl::string_view queue, std::string data) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckKey(queue.size()));
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckValue(data.size()));
  const size_t bytes = bytes_ + EntryBytes(queue, data);
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckTotal(bytes));
  bytes_ = bytes;
  queues_[queue].push_back(std::move(data));
  WakeOneForQueue(queue);
  return absl::OkStatus();
}

KeySpace::Popped KeySpace::QueuePop(WaiterId who, absl::string_view queue) {
  promised_.erase(who);
  auto it = queues_.find(queue);
  if (it == queues_.end()) return {};
  Popped popped{static_cast<int64_t>(it->second.size()), std::move(it->second.front())};
  it->second.pop_front();
  bytes_ -= EntryBytes(queue, popped.value);
  if (it->second.empty()) queues_.erase(it);
  return popped;
}

int64_t KeySpace::QueueLength(absl::string_view queue) const {
  const auto it = queues_.find(queue);
  return it == queues_.end() ? 0 : static_cast<int64_t>(it->second.size());
}

bool KeySpace::Wait(WaiterId who, const std::vector<std::string>& keys) {
  Disarm(who);
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (!Exists(key)) missing.push_back(key);
  }
  if (missing.empty()) return true;  // The promise stays: clients may wait twice, then pop.
  Arm(who, /*at_barrier=*/false, missing);
  return false;
}

absl::StatusOr<bool> KeySpace::Barrier(WaiterId who, absl::string_view key, int64_t world_size) {
  Disarm(who);
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t arrived, Add(key, 1));
  if (arrived < world_size) {
    Arm(who, /*at_barrier=*/true, {std::string(key)});
    return false;
  }
  WakeAll(&at_barriers_, key);
  return true;
}

void KeySpace::Arm(WaiterId who, bool at_barrier, const std::vector<std::string>& keys) {
  CancelWait(who);
  Lines& lines = at_barrier ? at_barriers_ : for_keys_;
  Waiting waiting{++next_ticket_, {}, 0, at_barrier};
  for (const std::string& key : keys) {
    // A key that is listed twice gets one place in its line.
    if (!lines[key].emplace(waiting.ticket, who).second) continue;
    waiting.keys.push_back(key);
    ++waiting.missing;
  }
  waiting_.insert_or_assign(who, std::move(waiting));
}

void KeySpace::Serve(WaiterId who) {
  auto it = waiting_.find(who);
  HLAUNCH_CHECK(it != waiting_.end());
  if (--it->second.missing > 0) return;
  waiting_.erase(it);
  ready_.push_back(who);
}

void KeySpace::WakeAll(Lines* lines, absl::string_view key) {
  auto node = lines->extract(key);
  if (node.empty()) return;
  for (const auto& [ticket, who] : node.mapped()) Serve(who);
}

void KeySpace::WakeOneForQueue(absl::string_view queue) {
  auto node = for_keys_.extract(queue);
  if (node.empty()) return;
  Line& line = node.mapped();
  for (bool woken = false; !woken && !line.empty();) {
    const WaiterId who = line.begin()->second;
    line.erase(line.begin());
    Serve(who);
    woken = !waiting_.contains(who);  // Else it waits for other keys, too; the next may get this.
    if (woken) promised_.insert_or_assign(who, std::string(queue));
  }
  if (!line.empty()) for_keys_.insert(std::move(node));
}

void KeySpace::Disarm(WaiterId who) {
  if (auto node = waiting_.extract(who); !node.empty()) {
    const Waiting& waiting = node.mapped();
    Lines& lines = waiting.at_barrier ? at_barriers_ : for_keys_;
    for (const std::string& key : waiting.keys) {
      auto line = lines.find(key);
      if (line == lines.end()) continue;
      line->second.erase(waiting.ticket);
      if (line->second.empty()) lines.erase(line);
    }
  }
  ready_.erase(std::remove(ready_.begin(), ready_.end(), who), ready_.end());
}

void KeySpace::CancelWait(WaiterId who) {
  Disarm(who);
  if (auto node = promised_.extract(who); !node.empty() && QueueLength(node.mapped()) > 0) {
    WakeOneForQueue(node.mapped());
  }
}

std::vector<KeySpace::WaiterId> KeySpace::TakeReady() { return std::exchange(ready_, {}); }

}  // namespace hlaunch
