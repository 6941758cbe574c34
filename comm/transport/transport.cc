// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/transport.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

absl::Status Transport::Wait(const Message& message, Instant deadline) {
  while (true) {
    HLAUNCH_RETURN_IF_ERROR(Progress(message, deadline));
    if (message.done) return absl::OkStatus();
    // Only a Progress that slept can return late, so the clock is not read on the fast path.
    if (MonotonicClock().Now() >= deadline) return GiveUp(message);
  }
}

std::string Text(const Message& message) {
  if (message.call.verb == Verb::kSend) return absl::StrCat("send with tag ", message.number);
  return absl::StrCat(Name(message.call.verb), " #", message.number);
}

absl::Status WentAway(const std::string& whom, const Message* missed) {
  return absl::UnavailableError(absl::StrCat(whom, " went away",
                                             missed == nullptr ? "" : " during ",
                                             missed == nullptr ? "" : Text(*missed)));
}

absl::Status Left(const std::string& whom, const Message& missed, const std::string& why) {
  return absl::UnavailableError(absl::StrCat(whom, " left the group before ", Text(missed),
                                             why.empty() ? "" : ", after ", why));
}

absl::Status TimedOut(Rank self, const std::string& whom, const Message& missed) {
  return absl::DeadlineExceededError(
      absl::StrCat("rank ", self, " waited in vain for ", whom, " in ", Text(missed)));
}

absl::Status Mismatch(Rank self, const Message& mine, size_t my_bytes, const std::string& whom,
                      const Call& theirs, size_t their_bytes) {
  if (mine.call == theirs) {
    return absl::InvalidArgumentError(absl::StrCat(Text(mine), " does not match: rank ", self,
                                                   " expects ", my_bytes, " bytes from ", whom,
                                                   ", which sends ", their_bytes));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(mine.call.verb == Verb::kSend ? Text(mine) : absl::StrCat("call #", mine.number),
                   " does not match: rank ", self, " calls ", Text(mine.call), ", ", whom,
                   " calls ", Text(theirs)));
}

}  // namespace hlaunch
