// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_commands.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Returns whether `request` changes a key that holds `old` (null if the key is absent).
bool Changes(const C10dRequest& request, const std::string* old) {
  switch (request.op) {
    case C10dOp::kSet:
    case C10dOp::kMultiSet:
    case C10dOp::kAdd:
    case C10dOp::kAppend:
      return true;
    case C10dOp::kDeleteKey:
      return old != nullptr;
    case C10dOp::kCompareSet:
      return (old != nullptr ? absl::string_view(*old) : "") == request.values[0];
    default:
      return false;
  }
}

// A long list is made in portions of this size. After kMostBegins attempts it is made at once.
constexpr size_t kListPortion = 2048;
constexpr size_t kListPortionBytes = 256 << 10;
constexpr int kMostBegins = 4;

}  // namespace

absl::StatusOr<C10dCommands::Outcome> C10dCommands::Execute(ClientId client, C10dRequest request,
                                                            std::string* reply) {
  if (request.op == C10dOp::kWatchKey) watchers_[request.keys[0]].insert(client);
  std::vector<Change> changes;
  if (!watchers_.empty()) changes = WatchedChanges(request);
  Outcome outcome;
  HLAUNCH_ASSIGN_OR_RETURN(outcome.waits, Run(client, std::move(request), reply));
  for (const Change& change : changes) AddNotices(change, &outcome.notices);
  return outcome;
}

void C10dCommands::Forget(ClientId client) {
  keys_.CancelWait(client);
  for (auto it = watchers_.begin(); it != watchers_.end();) {
    it->second.erase(client);
    const auto next = std::next(it);
    if (it->second.empty()) watchers_.erase(it);
    it = next;
  }
}

// Returns whether the client now waits.
absl::StatusOr<bool> C10dCommands::Run(ClientId client, C10dRequest request, std::string* reply) {
  bool waits = false;
  switch (request.op) {
    case C10dOp::kGet:
    case C10dOp::kMultiGet:
      HLAUNCH_RETURN_IF_ERROR(PutValues(request.keys, reply));
      break;
    case C10dOp::kListKeys:
      HLAUNCH_RETURN_IF_ERROR(PutKeys(reply));
      break;
    case C10dOp::kCheck:
      PutByte(reply, keys_.Check(request.keys) ? kC10dReady : kC10dNotReady);
      break;
    case C10dOp::kNumKeys:
      PutInt64(reply, static_cast<int64_t>(keys_.size()));
      break;
    case C10dOp::kDeleteKey:
      PutInt64(reply, keys_.Delete(request.keys[0]) ? 1 : 0);
      break;
    case C10dOp::kWait: {
      HLAUNCH_ASSIGN_OR_RETURN(const bool here, keys_.Wait(client, request.keys));
      waits = !here;
      if (!waits) PutByte(reply, kC10dStopWaiting);
      break;
    }
    case C10dOp::kBarrier: {
      HLAUNCH_ASSIGN_OR_RETURN(const bool open,
                               keys_.Barrier(client, request.keys[0], request.number));
      waits = !open;
      if (!waits) PutByte(reply, kC10dStopWaiting);
      break;
    }
    case C10dOp::kCancelWait:
      keys_.CancelWait(client);
      PutByte(reply, kC10dWaitCanceled);
      break;
    case C10dOp::kPing:
      PutUint32(reply, static_cast<uint32_t>(request.number));
      break;
    case C10dOp::kQueuePop: {
      const KeySpace::Popped popped = keys_.QueuePop(client, request.keys[0]);
      PutInt64(reply, popped.length_before);
      if (popped.length_before > 0) PutText(reply, popped.value);
      break;
    }
    case C10dOp::kQueueLen:
      PutInt64(reply, keys_.QueueLength(request.keys[0]));
      break;
    case C10dOp::kWatchKey:
      PutByte(reply, kC10dCallbackRegistered);
      break;
    default:
      HLAUNCH_RETURN_IF_ERROR(Write(std::move(request), reply));
  }
  return waits;
}

// Runs the requests that store something.
absl::Status C10dCommands::Write(C10dRequest request, std::string* reply) {
  switch (request.op) {
    case C10dOp::kSet:
    case C10dOp::kMultiSet:
      for (size_t i = 0; i < request.keys.size(); ++i) {
        HLAUNCH_RETURN_IF_ERROR(keys_.Set(request.keys[i], std::move(request.values[i])));
      }
      return absl::OkStatus();
    case C10dOp::kAppend:
      return keys_.Append(request.keys[0], request.values[0]);
    case C10dOp::kQueuePush:
      return keys_.QueuePush(request.keys[0], std::move(request.values[0]));
    case C10dOp::kCompareSet: {
      HLAUNCH_ASSIGN_OR_RETURN(
          const std::string value,
          keys_.CompareAndSet(request.keys[0], request.values[0], request.values[1]));
      PutText(reply, value);
      return absl::OkStatus();
    }
    case C10dOp::kAdd: {
      HLAUNCH_ASSIGN_OR_RETURN(const int64_t sum, keys_.Add(request.keys[0], request.number));
      PutInt64(reply, sum);
      return absl::OkStatus();
    }
    default:
      return absl::InternalError("not a request that stores something");
  }
}

absl::Status C10dCommands::PutValues(const std::vector<std::string>& wanted,
                                     std::string* reply) const {
  const auto value_of = [this](const std::string& key) {
    const std::string* value = keys_.Find(key);  // Null if deleted since the client waited for it.
    return value != nullptr ? absl::string_view(*value) : absl::string_view();
  };
  size_t bytes = 0;
  for (const std::string& key : wanted) bytes += value_of(key).size();
  HLAUNCH_RETURN_IF_ERROR(CheckReply(bytes));
  for (const std::string& key : wanted) PutText(reply, value_of(key));
  return absl::OkStatus();
}

bool C10dCommands::ListsLong() const { return keys_.size() > kListPortion; }

absl::StatusOr<bool> C10dCommands::GoOn(Listing& listing) const {
  std::string& reply = listing.reply.text();
  if (!listing.begun || listing.shape != keys_.shape()) {
    reply.clear();
    PutInt64(&reply, static_cast<int64_t>(keys_.size()));
    listing.next = keys_.begin();
    listing.bytes = 0;
    listing.shape = keys_.shape();
    listing.begun = true;
    ++listing.begins;
  }
  const bool whole = listing.begins > kMostBegins;
  const size_t full = listing.bytes + kListPortionBytes;
  for (size_t keys = 0; listing.next != keys_.end(); ++listing.next, ++keys) {
    if (!whole && (keys >= kListPortion || listing.bytes >= full)) break;
    listing.bytes += listing.next->key().size();
    PutText(&reply, listing.next->key());
  }
  listing.reply.Recount();
  HLAUNCH_RETURN_IF_ERROR(CheckReply(listing.bytes));
  return listing.next == keys_.end();
}

absl::Status C10dCommands::PutKeys(std::string* reply) const {
  size_t bytes = 0;
  keys_.ForEachKey([&bytes](absl::string_view key) { bytes += key.size(); });
  HLAUNCH_RETURN_IF_ERROR(CheckReply(bytes));
  reply->reserve(reply->size() + (keys_.size() + 1) * sizeof(int64_t) + bytes);
  PutInt64(reply, static_cast<int64_t>(keys_.size()));
  keys_.ForEachKey([reply](absl::string_view key) { PutText(reply, key); });
  return absl::OkStatus();
}

absl::Status C10dCommands::CheckReply(size_t bytes) const {
  const size_t most = MaxC10dMessageBytes(limits());
  if (bytes <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a reply of ", bytes, " bytes, at most ", most));
}

// Returns what `request` is about to do to watched keys.
std::vector<C10dCommands::Change> C10dCommands::WatchedChanges(const C10dRequest& request) const {
  std::vector<Change> changes;
  for (const std::string& key : request.keys) {
    if (watchers_.find(key) == watchers_.end()) continue;
    const std::string* old = keys_.Find(key);
    if (Changes(request, old)) changes.push_back({key, old != nullptr, old ? *old : ""});
  }
  return changes;
}

void C10dCommands::AddNotices(const Change& change, std::vector<Notice>* notices) const {
  const std::string* now = keys_.Find(change.key);
  const uint8_t kind = now == nullptr   ? kC10dKeyDeleted
                       : change.existed ? kC10dKeyUpdated
                                        : kC10dKeyCreated;
  for (const ClientId client : watchers_.at(change.key)) {
    Notice& notice = notices->emplace_back();
    notice.client = client;
    PutByte(&notice.bytes, kind);
    PutText(&notice.bytes, change.key);
    PutText(&notice.bytes, change.old);
    PutText(&notice.bytes, now != nullptr ? absl::string_view(*now) : absl::string_view());
  }
}

}  // namespace hlaunch
