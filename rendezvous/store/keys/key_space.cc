// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/key_space.h"

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

// What a node of a std::map or a std::list takes, whose value has `size` bytes.
size_t TreeNodeBytes(size_t size) { return HeapBytes(4 * sizeof(void*) + size); }
size_t ListNodeBytes(size_t size) { return HeapBytes(2 * sizeof(void*) + size); }

size_t HeapBytesOf(const std::string& text) { return TextHeapBytes(text.capacity()); }

// Gives back most of what `text` has taken and does not need.
void Fit(std::string& text) {
  if (text.capacity() / 8 * 7 > text.size()) text.shrink_to_fit();
}

// The capacity of `text` after more bytes were appended.
size_t CapacityWith(const std::string& text, size_t more) {
  const size_t size = text.size() + more;
  return size <= text.capacity() ? text.capacity() : std::max(size, 2 * text.capacity());
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
  return CheckLimit("the store with this request", bytes, total_bytes,
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
  const auto* entry = values_.Find(key);
  return entry == nullptr ? nullptr : &entry->value;
}

bool KeySpace::Exists(absl::string_view key) const {
  return values_.Find(key) != nullptr || QueueLength(key) > 0;
}

absl::Status KeySpace::Put(absl::string_view key, std::string value) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckKey(key.size()));
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckValue(value.size()));
  Fit(value);
  auto* entry = values_.Find(key);
  const size_t bytes = bytes_ + HeapBytesOf(value) +
                       (entry == nullptr ? values_.EntryBytes(key) : 0) -
                       (entry != nullptr ? HeapBytesOf(entry->value) : 0);
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckTotal(bytes));
  bytes_ = bytes;
  if (entry == nullptr) {
    entry = &values_.Add(key);
    ++shape_;
  }
  entry->value.swap(value);  // Assigned, a short text would keep the old one's memory.
  return absl::OkStatus();
}

absl::Status KeySpace::Set(absl::string_view key, std::string value) {
  HLAUNCH_RETURN_IF_ERROR(Put(key, std::move(value)));
  WakeAll(for_keys_, key);
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
  auto* entry = values_.Find(key);
  if (entry == nullptr) return Set(key, std::string(data));
  // Appends in place: a value built from many small pieces is not copied for each.
  std::string& value = entry->value;
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckValue(value.size() + data.size()));
  const size_t others = bytes_ - HeapBytesOf(value);
  const size_t bytes = others + TextHeapBytes(CapacityWith(value, data.size()));
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckTotal(bytes));
  value.append(data.data(), data.size());
  bytes_ = others + HeapBytesOf(value);
  return absl::OkStatus();  // The key existed, so no client waits for it.
}

bool KeySpace::Delete(absl::string_view key) {
  auto* entry = values_.Find(key);
  if (entry == nullptr) return false;
  bytes_ -= values_.EntryBytes(key) + HeapBytesOf(entry->value);
  values_.Erase(*entry);
  ++shape_;
  return true;
}

bool KeySpace::Check(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](const auto& key) { return Exists(key); });
}

std::vector<std::string> KeySpace::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(values_.size());
  for (const auto& entry : values_) keys.emplace_back(entry.key());
  return keys;
}

absl::Status KeySpace::QueuePush(absl::string_view queue, std::string data) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckKey(queue.size()));
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckValue(data.size()));
  Fit(data);
  auto* entry = queues_.Find(queue);
  const size_t bytes = bytes_ + ListNodeBytes(sizeof(data)) + HeapBytesOf(data) +
                       (entry == nullptr ? queues_.EntryBytes(queue) : 0);
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckTotal(bytes));
  bytes_ = bytes;
  if (entry == nullptr) entry = &queues_.Add(queue);
  entry->value.push_back(std::move(data));
  WakeOneForQueue(queue);
  return absl::OkStatus();
}

KeySpace::Popped KeySpace::QueuePop(WaiterId who, absl::string_view queue) {
  TakePromise(who);
  auto* entry = queues_.Find(queue);
  if (entry == nullptr) return {};
  Queue& items = entry->value;
  bytes_ -= ListNodeBytes(sizeof(std::string)) + HeapBytesOf(items.front());
  Popped popped{static_cast<int64_t>(items.size()), std::move(items.front())};
  items.pop_front();
  if (items.empty()) {
    bytes_ -= queues_.EntryBytes(queue);
    queues_.Erase(*entry);
  }
  return popped;
}

int64_t KeySpace::QueueLength(absl::string_view queue) const {
  const auto* entry = queues_.Find(queue);
  return entry == nullptr ? 0 : static_cast<int64_t>(entry->value.size());
}

absl::StatusOr<bool> KeySpace::Wait(WaiterId who, const std::vector<std::string>& keys) {
  std::vector<absl::string_view> missing;
  for (const std::string& key : keys) {
    if (!Exists(key)) missing.push_back(key);
  }
  if (!missing.empty()) HLAUNCH_RETURN_IF_ERROR(CheckRoomToWait(missing));
  Disarm(who);
  if (missing.empty()) return true;  // The promise stays: clients may wait twice, then pop.
  Arm(who, /*at_barrier=*/false, missing);
  return false;
}

absl::StatusOr<bool> KeySpace::Barrier(WaiterId who, absl::string_view key, int64_t world_size) {
  HLAUNCH_RETURN_IF_ERROR(CheckRoomToWait({key}));
  Disarm(who);
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t arrived, Add(key, 1));
  if (arrived < world_size) {
    Arm(who, /*at_barrier=*/true, {key});
    return false;
  }
  WakeAll(at_barriers_, key);
  return true;
}

size_t KeySpace::WaitingBytes(size_t places) {
  return TreeNodeBytes(sizeof(std::pair<const WaiterId, Waiting>)) +
         HeapBytes(places * sizeof(Place));
}

void KeySpace::Unlink(Place& place) {
  place.before->after = place.after;
  place.after->before = place.before;
  place.before = place.after = &place;
}

// Counts a new line for each of `keys`, though others may wait for them already.
absl::Status KeySpace::CheckRoomToWait(const std::vector<absl::string_view>& keys) const {
  size_t bytes = bytes_ + WaitingBytes(keys.size());
  for (const absl::string_view key : keys) bytes += Lines::EntryBytes(key);
  return limits_.CheckTotal(bytes);
}

void KeySpace::Arm(WaiterId who, bool at_barrier, const std::vector<absl::string_view>& keys) {
  CancelWait(who);
  Lines& lines = at_barrier ? at_barriers_ : for_keys_;
  Waiting& waiting = waiting_[who];
  waiting.who = who;
  waiting.at_barrier = at_barrier;
  waiting.places.reserve(keys.size());  // They must stay where they are.
  bytes_ += WaitingBytes(keys.size());
  for (const absl::string_view key : keys) {
    Line& line = LineFor(lines, key);
    if (line.before->waiting == &waiting) continue;  // The key is listed twice.
    Place& last = waiting.places.emplace_back();
    last.waiting = &waiting;
    last.before = line.before;
    last.after = &line;
    last.before->after = last.after->before = &last;
  }
  waiting.missing = waiting.places.size();
}

KeySpace::Line& KeySpace::LineFor(Lines& lines, absl::string_view key) {
  Lines::Entry* entry = lines.Find(key);
  if (entry == nullptr) {
    entry = &lines.Add(key);
    entry->value.entry = entry;
    bytes_ += Lines::EntryBytes(key);
  }
  return entry->value;
}

void KeySpace::EndLine(Lines& lines, Line& line) {
  bytes_ -= Lines::EntryBytes(line.entry->key());
  lines.Erase(*line.entry);
}

// Takes `place` out of its line, because its key has come. Returns whether that was the last one.
bool KeySpace::Serve(Place& place) {
  Waiting& waiting = *place.waiting;
  Unlink(place);
  if (--waiting.missing > 0) return false;
  const WaiterId who = waiting.who;
  EndWait(waiting_.find(who));
  ready_.push_back(who);
  return true;
}

void KeySpace::WakeAll(Lines& lines, absl::string_view key) {
  Lines::Entry* entry = lines.Find(key);
  if (entry == nullptr) return;
  Line& line = entry->value;
  while (!line.alone()) Serve(*line.after);
  EndLine(lines, line);
}

void KeySpace::WakeOneForQueue(absl::string_view queue) {
  Lines::Entry* entry = for_keys_.Find(queue);
  if (entry == nullptr) return;
  Line& line = entry->value;
  for (bool woken = false; !woken && !line.alone();) {
    const WaiterId who = line.after->waiting->who;
    woken = Serve(*line.after);  // Else it waits for other keys, too; the next may get this.
    if (woken) Promise(who, queue);
  }
  if (line.alone()) EndLine(for_keys_, line);
}

void KeySpace::Disarm(WaiterId who) {
  if (const auto it = waiting_.find(who); it != waiting_.end()) {
    Lines& lines = it->second.at_barrier ? at_barriers_ : for_keys_;
    for (Place& place : it->second.places) {
      if (place.alone()) continue;
      Place* const before = place.before;
      Unlink(place);
      if (before->alone()) EndLine(lines, static_cast<Line&>(*before));
    }
    EndWait(it);
  }
  ready_.erase(std::remove(ready_.begin(), ready_.end(), who), ready_.end());
}

void KeySpace::EndWait(std::map<WaiterId, Waiting>::iterator waiting) {
  bytes_ -= WaitingBytes(waiting->second.places.capacity());
  waiting_.erase(waiting);
}

void KeySpace::CancelWait(WaiterId who) {
  Disarm(who);
  const std::optional<std::string> queue = TakePromise(who);
  if (queue.has_value() && QueueLength(*queue) > 0) WakeOneForQueue(*queue);
}

void KeySpace::Promise(WaiterId who, absl::string_view queue) {
  TakePromise(who);
  const std::string& promised = promised_.emplace(who, queue).first->second;
  bytes_ += TreeNodeBytes(sizeof(*promised_.begin())) + HeapBytesOf(promised);
}

// Returns the queue that has woken `who`, which it now either pops or not.
std::optional<std::string> KeySpace::TakePromise(WaiterId who) {
  auto node = promised_.extract(who);
  if (node.empty()) return std::nullopt;
  bytes_ -= TreeNodeBytes(sizeof(*promised_.begin())) + HeapBytesOf(node.mapped());
  return std::move(node.mapped());
}

std::vector<KeySpace::WaiterId> KeySpace::TakeReady() { return std::exchange(ready_, {}); }

}  // namespace hlaunch
