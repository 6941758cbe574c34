// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/exit_set.h"

#include <csignal>
#include <cstddef>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr size_t kShownOfAWord = 40;

// Returns the exit code that `text` names; 0 if it names none.
int CodeOf(string_view text) {
  int code = 0;
  const bool digits = !text.empty() && text.size() <= 3 && absl::ascii_isdigit(text[0]);
  return digits && absl::SimpleAtoi(text, &code) && code <= 255 ? code : 0;
}

// Returns the signal that `name` names; 0 if it names none.
int SignalOf(string_view name) {
  absl::ConsumePrefix(&name, "SIG");
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return 0;
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", signal);
}

}  // namespace

std::string NameOf(const FailureTraits& failure) {
  if (failure.node) return "node";
  if (failure.hang) return "hang";
  if (failure.oom) return "oom";
  if (failure.signal > 0) return SignalName(failure.signal);
  return absl::StrCat("exit code ", failure.exit_code);
}

absl::StatusOr<ExitSet> ExitSet::Parse(string_view text) {
  ExitSet set;
  if (absl::StripAsciiWhitespace(text).empty()) return set;
  for (const string_view part : absl::StrSplit(text, ',')) {
    const string_view word = absl::StripAsciiWhitespace(part);
    if (set.Take(word)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", absl::Utf8SafeCEscape(word.substr(0, kShownOfAWord)),
        "' names no failure; expected words with commas between them: exit codes from 1 to 255, "
        "ranges such as 64-78, signals such as SIGKILL, oom, hang, node or any"));
  }
  return set;
}

// Returns false if `word` names no failure.
bool ExitSet::Take(string_view word) {
  if (word == "any") return any_ = true;
  if (word == "oom") return oom_ = true;
  if (word == "hang") return hang_ = true;
  if (word == "node") return node_ = true;
  if (const int signal = SignalOf(word); signal > 0) {
    codes_.set(static_cast<size_t>(kExitSignalBase + signal));
    return true;
  }
  const size_t dash = word.find('-');
  const int first = CodeOf(word.substr(0, dash));
  const int last = dash == word.npos ? first : CodeOf(word.substr(dash + 1));
  if (first == 0 || last < first) return false;
  for (int code = first; code <= last; ++code) codes_.set(static_cast<size_t>(code));
  return true;
}

std::string ExitSet::WordOf(const FailureTraits& failure) const {
  if (node_ && failure.node) return "node";
  if (hang_ && failure.hang) return "hang";
  if (oom_ && failure.oom) return "oom";
  const int code = failure.exit_code;
  if (0 < code && code < 256 && codes_.test(static_cast<size_t>(code))) {
    return failure.signal > 0 ? SignalName(failure.signal) : absl::StrCat("exit code ", code);
  }
  return any_ ? NameOf(failure) : "";
}

bool ExitSet::Covers(const ExitSet& other) const {
  if (any_) return true;
  const bool kinds = (oom_ || !other.oom_) && (hang_ || !other.hang_) && (node_ || !other.node_);
  return kinds && !other.any_ && (other.codes_ & ~codes_).none();
}

}  // namespace hlaunch
