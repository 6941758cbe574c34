// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/failure_record.h"

#include <chrono>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "comm/connection/connection.h"

namespace hlaunch {

namespace {

constexpr Duration kPatience = std::chrono::seconds(1);

std::optional<Failure> FromRecord(absl::string_view record) {
  NoticePacket packet;
  if (record.size() != sizeof packet) return std::nullopt;
  std::memcpy(&packet, record.data(), sizeof packet);
  const Notice notice = Unpack(packet);
  if (notice.kind != Notice::kFailed) return std::nullopt;
  return notice.failure;
}

}  // namespace

Store& FailureRecord::Hasty() {
  if (attempt_ == nullptr) attempt_ = store_.Attempt(kPatience);
  return attempt_ == nullptr ? store_ : *attempt_;
}

Failure FailureRecord::RecordFirst(const Failure& failure) {
  const NoticePacket packet = Pack({Notice::kFailed, failure});
  const absl::string_view own(reinterpret_cast<const char*>(&packet), sizeof packet);
  const auto first = Hasty().CompareAndSet(absl::StrCat(prefix_, "failure"), "", own);
  return first.ok() ? FromRecord(*first).value_or(failure) : failure;
}

std::optional<Failure> FailureRecord::AwaitFirst(Instant deadline) {
  const auto first = store_.Get(absl::StrCat(prefix_, "failure"), deadline);
  return first.ok() ? FromRecord(*first) : std::nullopt;
}

bool FailureRecord::RecordWait(Rank self, const Failure& failure) {
  return Hasty()
      .Append(absl::StrCat(prefix_, "waits"),
              absl::StrCat(self, " ", failure.rank, " ", failure.status.message(), "\n"))
      .ok();
}

bool FailureRecord::SearchesForAll(Rank self) {
  const std::string own = absl::StrCat(self);
  const auto first = Hasty().CompareAndSet(absl::StrCat(prefix_, "search"), "", own);
  return first.ok() && *first == own;
}

Failure FailureRecord::FindRootCause(const Failure& failure, Instant deadline) {
  const absl::StatusOr<std::string> waits = store_.Get(absl::StrCat(prefix_, "waits"), deadline);
  return waits.ok() ? EndOfChain(failure, *waits) : failure;
}

Failure EndOfChain(const Failure& failure, absl::string_view waits) {
  std::map<Rank, Failure> by_rank;
  for (const absl::string_view line : absl::StrSplit(waits, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    Rank self, awaited;
    if (words.size() != 3 || !absl::SimpleAtoi(words[0], &self) ||
        !absl::SimpleAtoi(words[1], &awaited)) {
      continue;
    }
    by_rank.insert_or_assign(self, Failure{absl::DeadlineExceededError(words[2]), awaited});
  }
  Failure cause = failure;
  for (size_t steps = 0; steps < by_rank.size(); ++steps) {
    const auto next = by_rank.find(cause.rank);
    if (next == by_rank.end()) return cause;
    cause = next->second;
  }
  return failure;  // The ranks wait for each other.
}

}  // namespace hlaunch
