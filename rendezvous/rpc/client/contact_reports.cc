// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/contact_reports.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hlaunch {
namespace {

constexpr size_t kMostReported = 16;  // How many reported troubles are remembered.

}  // namespace

std::string SecondsText(Duration duration) {
  return absl::StrFormat("%g", std::chrono::duration<double>(duration).count());
}

void ContactReports::Report(bool connected, const std::string& detail, bool several) {
  std::pair<bool, std::string> report(connected, detail);
  if (std::find(made_.begin(), made_.end(), report) != made_.end()) return;
  if (connected || !several || made_.size() > kMostReported || made_.front().first) made_.clear();
  made_.push_back(std::move(report));
  listener_->OnContact(connected, detail);
}

absl::Status StatusOf(const LostContact& lost) {
  const std::string because = lost.trouble.empty() ? "" : absl::StrCat(": ", lost.trouble);
  const std::string limit = absl::StrCat(SecondsText(lost.limit), " s");
  if (lost.contacted) {
    const std::string nothing =
        absl::StrCat("nothing heard from the rendezvous at ", lost.endpoints, " for ", limit);
    // No voter leads the job, so what was started in the host's place is all there is.
    if (!lost.another.empty()) {
      return absl::OutOfRangeError(absl::StrCat(nothing, ": ", lost.another));
    }
    return absl::DeadlineExceededError(absl::StrCat(nothing, because));
  }
  if (lost.unresolved) {
    return absl::InvalidArgumentError(
        absl::StrCat("rendezvous endpoint ", lost.endpoints, because, " (tried for ", limit, ")"));
  }
  if (lost.answered) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the rendezvous at ", lost.endpoints, " took this node not in within ", limit, because));
  }
  return absl::UnavailableError(
      absl::StrCat("rendezvous at ", lost.endpoints, " not reached within ", limit, because));
}

}  // namespace hlaunch
