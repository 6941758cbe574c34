// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/memory_store.h"

#include <algorithm>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxFeedBytes = 16 << 20;  // Bytes of key names that a watch has not told.

}  // namespace

absl::Status WaitTimedOut(const std::vector<std::string>& missing) {
  constexpr size_t kNamed = 3;
  const size_t named = std::min(missing.size(), kNamed);
  return absl::DeadlineExceededError(absl::StrCat(
      "timed out waiting for keys that nobody has set: '",
      absl::StrJoin(missing.begin(), missing.begin() + static_cast<ptrdiff_t>(named), "', '"), "'",
      missing.size() > named ? absl::StrCat(" and ", missing.size() - named, " more") : ""));
}

absl::Status BarrierTimedOut(absl::string_view key) {
  return absl::DeadlineExceededError(absl::StrCat("timed out at barrier '",
                                                  absl::CHexEscape(key.substr(0, 100)),
                                                  "': others have not arrived"));
}

// The waits and watches that a change concerns. The destructor calls them: declare it before the
// lock.
class MemoryStore::News {
 public:
  ~News() {
    for (auto& [done, values] : done_) done(std::move(values));
    for (const auto& on_news : feeds_) on_news();
  }
  void Add(Done done, absl::StatusOr<Values> values) {
    done_.emplace_back(std::move(done), std::move(values));
  }
  void Add(const Feed& feed) { feeds_.push_back(feed.on_news); }

 private:
  std::vector<std::pair<Done, absl::StatusOr<Values>>> done_;
  std::vector<std::function<void()>> feeds_;
};

// Called after every change of a key.
void MemoryStore::ChangedLocked(absl::string_view key, News* news) {
  for (const WaitId id : keys_.TakeReady()) {
    // A key that had come may be gone again: a wait for values goes on until all are there.
    const absl::StatusOr<bool> here = keys_.Wait(id, waits_.at(id).keys);
    if (here.ok() && !*here) continue;
    auto node = waits_.extract(id);
    Waiting& waiting = node.mapped();
    waiting_bytes_ -= waiting.bytes;
    news->Add(std::move(waiting.done),
              here.ok() ? ValuesLocked(waiting.keys) : absl::StatusOr<Values>(here.status()));
  }
  for (const auto& feed : feeds_) {
    if (absl::StartsWith(key, feed->prefix)) NoteLocked(*feed, key, news);
  }
}

void MemoryStore::NoteLocked(Feed& feed, absl::string_view key, News* news) {
  if (feed.overrun || !feed.once.insert(std::string(key)).second) return;
  if (feed.changed.empty()) news->Add(feed);
  feed.changed.emplace_back(key);
  feed.bytes += key.size() + kEntryBytes;
  feed.overrun = feed.bytes > kMaxFeedBytes + keys_.limits().total_bytes;
}

absl::Status MemoryStore::Set(absl::string_view key, absl::string_view value) {
  return MultiSet({{std::string(key), std::string(value)}});
}

absl::Status MemoryStore::MultiSet(const std::vector<std::pair<std::string, std::string>>& pairs) {
  News news;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(pairs.size()));
  for (const auto& [key, value] : pairs) {
    HLAUNCH_RETURN_IF_ERROR(keys_.Set(key, value));
    ChangedLocked(key, &news);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MemoryStore::Add(absl::string_view key, int64_t delta) {
  News news;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t sum, keys_.Add(key, delta));
  ChangedLocked(key, &news);
  return sum;
}

absl::StatusOr<std::string> MemoryStore::CompareAndSet(absl::string_view key,
                                                       absl::string_view expected,
                                                       absl::string_view desired) {
  News news;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  const std::string* old = keys_.Find(key);
  const bool sets = old != nullptr ? *old == expected : expected.empty();
  HLAUNCH_ASSIGN_OR_RETURN(std::string value, keys_.CompareAndSet(key, expected, desired));
  if (sets) ChangedLocked(key, &news);
  return value;
}

absl::Status MemoryStore::Append(absl::string_view key, absl::string_view data) {
  News news;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  HLAUNCH_RETURN_IF_ERROR(keys_.Append(key, data));
  ChangedLocked(key, &news);
  return absl::OkStatus();
}

absl::StatusOr<bool> MemoryStore::Delete(absl::string_view key) {
  News news;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  const bool existed = keys_.Delete(key);
  if (existed) ChangedLocked(key, &news);
  return existed;
}

absl::StatusOr<bool> MemoryStore::Check(const std::vector<std::string>& keys) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(keys.size()));
  return keys_.Check(keys);
}

absl::StatusOr<int64_t> MemoryStore::NumKeys() {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  return static_cast<int64_t>(keys_.size());
}

absl::StatusOr<std::vector<std::string>> MemoryStore::List(absl::string_view prefix) {
  std::vector<std::string> found;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  for (std::string& key : keys_.Keys()) {
    if (absl::StartsWith(key, prefix)) found.push_back(std::move(key));
  }
  std::sort(found.begin(), found.end());
  return found;
}

// ---- Waits ----

absl::Status MemoryStore::CheckKeysLocked(const std::vector<std::string>& keys) const {
  HLAUNCH_RETURN_IF_ERROR(ended_);
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckList(keys.size()));
  for (const std::string& key : keys) {
    HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckKey(key.size()));
  }
  return absl::OkStatus();
}

absl::Status MemoryStore::MissingLocked(const std::vector<std::string>& keys) const {
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (keys_.Find(key) == nullptr) missing.push_back(key);
  }
  return missing.empty() ? absl::OkStatus() : WaitTimedOut(missing);
}

MemoryStore::Values MemoryStore::ValuesLocked(const std::vector<std::string>& keys) const {
  Values values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(*keys_.Find(key));
  return values;
}

absl::Status MemoryStore::MakeRoomLocked(size_t bytes) {
  if (waits_.size() + feeds_.size() < options_.max_waits &&
      waiting_bytes_ + bytes <= options_.max_waiting_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("too many wait for keys of this store: ", waits_.size() + feeds_.size()));
}

MemoryStore::WaitId MemoryStore::WhenAll(const std::vector<std::string>& keys, bool with_values,
                                         Done done) {
  News news;
  MutexLock lock(&mu_);
  const WaitId id = ++last_id_;
  size_t bytes = 0;
  for (const std::string& key : keys) bytes += key.size() + kEntryBytes;
  absl::Status status = CheckKeysLocked(keys);
  if (status.ok() && !keys_.Check(keys)) {
    status = MakeRoomLocked(bytes);
    if (status.ok()) status = keys_.Wait(id, keys).status();
    if (status.ok()) {
      waiting_bytes_ += bytes;
      waits_.emplace(id, Waiting{with_values ? keys : Values(), bytes, std::move(done)});
      return id;
    }
  }
  if (!status.ok()) {
    news.Add(std::move(done), std::move(status));
  } else {
    news.Add(std::move(done), with_values ? ValuesLocked(keys) : Values());
  }
  return id;
}

MemoryStore::WaitId MemoryStore::WhenBarrier(absl::string_view key, int64_t world_size, Done done) {
  News news;
  MutexLock lock(&mu_);
  const WaitId id = ++last_id_;
  const size_t bytes = key.size() + kEntryBytes;
  absl::Status status = ended_;
  if (status.ok()) status = MakeRoomLocked(bytes);
  if (status.ok()) {
    const absl::StatusOr<bool> open = keys_.Barrier(id, key, world_size);
    status = open.status();
    if (status.ok()) ChangedLocked(key, &news);
    if (status.ok() && !*open) {
      waiting_bytes_ += bytes;
      waits_.emplace(id, Waiting{{}, bytes, std::move(done)});
      return id;
    }
  }
  if (!status.ok()) {
    news.Add(std::move(done), std::move(status));
  } else {
    news.Add(std::move(done), Values());
  }
  return id;
}

bool MemoryStore::GiveUp(WaitId id) {
  News news;
  MutexLock lock(&mu_);
  const auto it = waits_.find(id);
  if (it == waits_.end()) return false;
  waiting_bytes_ -= it->second.bytes;
  waits_.erase(it);
  keys_.CancelWait(id);
  return true;
}

// `begin` starts a wait; returns `late` if time is up.
absl::StatusOr<MemoryStore::Values> MemoryStore::Await(const std::function<WaitId(Done)>& begin,
                                                       const absl::Status& late, Instant deadline) {
  Mutex mu;
  CondVar came;
  std::optional<absl::StatusOr<Values>> values;
  const WaitId id = begin([&](absl::StatusOr<Values> result) {
    MutexLock lock(&mu);
    values = std::move(result);
    came.Signal();
  });
  {
    MutexLock lock(&mu);
    while (!values.has_value() && came.WaitUntil(&mu, deadline)) {
    }
    if (values.has_value()) return *std::move(values);
  }
  if (GiveUp(id)) return late;
  MutexLock lock(&mu);  // The result has come this moment.
  while (!values.has_value()) came.Wait(&mu);
  return *std::move(values);
}

absl::StatusOr<MemoryStore::Values> MemoryStore::AwaitKeys(const std::vector<std::string>& keys,
                                                           bool with_values, Instant deadline) {
  auto values = Await([&](Done done) { return WhenAll(keys, with_values, std::move(done)); },
                      absl::DeadlineExceededError(""), deadline);
  if (!absl::IsDeadlineExceeded(values.status())) return values;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  HLAUNCH_RETURN_IF_ERROR(MissingLocked(keys));
  return with_values ? ValuesLocked(keys) : Values();  // The last key came in between.
}

absl::Status MemoryStore::Wait(const std::vector<std::string>& keys, Instant deadline) {
  return AwaitKeys(keys, /*with_values=*/false, deadline).status();
}

absl::StatusOr<std::vector<std::string>> MemoryStore::MultiGet(const std::vector<std::string>& keys,
                                                               Instant deadline) {
  return AwaitKeys(keys, /*with_values=*/true, deadline);
}

absl::StatusOr<std::string> MemoryStore::Get(absl::string_view key, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(Values values, MultiGet({std::string(key)}, deadline));
  return std::move(values[0]);
}

absl::Status MemoryStore::Barrier(absl::string_view key, int64_t world_size, Instant deadline) {
  return Await([&](Done done) { return WhenBarrier(key, world_size, std::move(done)); },
               BarrierTimedOut(key), deadline)
      .status();
}

// ---- Watches ----

namespace {

// A watch whose caller waits in Next.
class BlockingWatch final : public StoreWatch {
 public:
  explicit BlockingWatch(MemoryStore& store) : store_(store) {}
  ~BlockingWatch() override {
    if (feed_ != nullptr) store_.Unfollow(feed_);
  }

  absl::Status Begin(absl::string_view prefix) {
    HLAUNCH_ASSIGN_OR_RETURN(feed_, store_.Follow(prefix, [bell = bell_] {
      MutexLock lock(&bell->mu);
      bell->rung = true;
      bell->rings.Signal();
    }));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<KeyChange>> Next(Instant deadline) override {
    for (;;) {
      HLAUNCH_ASSIGN_OR_RETURN(MemoryStore::Taken taken,
                               store_.Take(feed_, std::numeric_limits<size_t>::max()));
      if (taken.first || !taken.changes.empty()) return std::move(taken.changes);
      MutexLock lock(&bell_->mu);
      while (!bell_->rung) {
        if (!bell_->rings.WaitUntil(&bell_->mu, deadline) && !bell_->rung) return NothingChanged();
      }
      bell_->rung = false;
    }
  }

 private:
  struct Bell {
    Mutex mu;
    CondVar rings;
    bool rung ABSL_GUARDED_BY(mu) = false;
  };

  MemoryStore& store_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();  // The store may ring late.
  std::shared_ptr<MemoryStore::Feed> feed_;
};

}  // namespace

absl::Status NothingChanged() {
  return absl::DeadlineExceededError("no key that is watched has changed");
}

absl::StatusOr<std::unique_ptr<StoreWatch>> MemoryStore::Watch(absl::string_view prefix) {
  auto watch = std::make_unique<BlockingWatch>(*this);
  HLAUNCH_RETURN_IF_ERROR(watch->Begin(prefix));
  return std::unique_ptr<StoreWatch>(std::move(watch));
}

absl::StatusOr<std::shared_ptr<MemoryStore::Feed>> MemoryStore::Follow(
    absl::string_view prefix, std::function<void()> on_news) {
  News news;
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  HLAUNCH_RETURN_IF_ERROR(keys_.limits().CheckKey(prefix.size()));
  HLAUNCH_RETURN_IF_ERROR(MakeRoomLocked(0));
  auto feed = std::make_shared<Feed>();
  feed->prefix = std::string(prefix);
  feed->on_news = std::move(on_news);
  std::vector<std::string> keys = keys_.Keys();
  std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    if (absl::StartsWith(key, prefix)) NoteLocked(*feed, key, &news);
  }
  feeds_.insert(feed);
  return feed;
}

absl::StatusOr<MemoryStore::Taken> MemoryStore::Take(const std::shared_ptr<Feed>& feed,
                                                     size_t max_bytes) {
  MutexLock lock(&mu_);
  HLAUNCH_RETURN_IF_ERROR(ended_);
  if (feed->overrun) {
    return absl::ResourceExhaustedError(
        "too many keys have changed since this watch was last asked; watch anew");
  }
  Taken taken;
  size_t bytes = 0;
  size_t at = 0;
  for (; at < feed->changed.size() && bytes < max_bytes; ++at) {
    std::string& key = feed->changed[at];
    feed->once.erase(key);
    feed->bytes -= key.size() + kEntryBytes;
    KeyChange change;
    if (const std::string* value = keys_.Find(key)) change.value = *value;
    bytes += key.size() + kEntryBytes + (change.value.has_value() ? change.value->size() : 0);
    change.key = std::move(key);
    taken.changes.push_back(std::move(change));
  }
  feed->changed.erase(feed->changed.begin(), feed->changed.begin() + static_cast<ptrdiff_t>(at));
  taken.more = !feed->changed.empty();
  taken.first = feed->fresh;
  feed->fresh = false;
  return taken;
}

void MemoryStore::Unfollow(const std::shared_ptr<Feed>& feed) {
  MutexLock lock(&mu_);
  feeds_.erase(feed);
}

void MemoryStore::End(const absl::Status& why) {
  News news;
  MutexLock lock(&mu_);
  if (!ended_.ok()) return;
  ended_ = why;
  for (auto& [id, waiting] : waits_) news.Add(std::move(waiting.done), why);
  for (const auto& feed : feeds_) news.Add(*feed);
  waits_.clear();
  waiting_bytes_ = 0;
  keys_ = KeySpace(options_.limits);
}

}  // namespace hlaunch
