// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/values/option_values.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/output/line_matcher.h"
#include "launcher/cli/values/seconds.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr double kMaxSeconds = 365.0 * 24 * 3600;
constexpr double kLeastSilence = 1;
constexpr int kMaxKeptFiles = 1000;
constexpr int64_t kMinRotateBytes = 4096;
constexpr int64_t kMaxRotateBytes = int64_t{1} << 50;

bool ParseStreams(string_view text, Streams* out) {
  int value = 0;
  if (!ParseInt(text, 0, 3, &value)) return false;
  *out = static_cast<Streams>(value);
  return true;
}

// Parses a number with an optional unit; returns -1 on an error.
int64_t ParseBytes(string_view text, int64_t most) {
  int64_t unit = 1;
  if (absl::ConsumeSuffix(&text, "K")) {
    unit = int64_t{1} << 10;
  } else if (absl::ConsumeSuffix(&text, "M")) {
    unit = int64_t{1} << 20;
  } else if (absl::ConsumeSuffix(&text, "G")) {
    unit = int64_t{1} << 30;
  }
  int64_t count = 0;
  const bool digits = std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &count) || count > most / unit) return -1;
  return count * unit;
}

int SignalOfName(string_view name) {
  absl::ConsumePrefix(&name, "SIG");
  for (int number = 1; number < SIGRTMIN; ++number) {
    const char* known = ::sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return 0;
}

// Returns why hlaunch cannot pass the signal on to workers, or null if it can.
const char* WhyNotHandled(int number) {
  switch (number) {
    case SIGKILL:
    case SIGSTOP:
      return "no process can handle it";
    case SIGCHLD:
      return "it tells hlaunch of its own processes";
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGSYS:
      return "it tells of a fault of the process that gets it";
    default:
      return nullptr;
  }
}

absl::Status CheckPattern(string_view pattern) {
  if (pattern.empty()) return InvalidArgumentError("expected a pattern, such as 'loss=(nan|inf)'");
  const absl::Status status = LinePatterns::Compile({std::string(pattern)}).status();
  if (status.ok()) return absl::OkStatus();
  return InvalidArgumentError(absl::StrCat("is no pattern of RE2: ", status.message()));
}

}  // namespace

absl::StatusOr<Duration> ParseTimeout(string_view text, double min_seconds) {
  const std::optional<double> seconds = ReadSeconds(text);
  if (!seconds || *seconds < min_seconds || *seconds > kMaxSeconds) {
    return InvalidArgumentError(absl::StrCat("expected a time from ", min_seconds,
                                             "s to 365d, such as 30, 1.5, 30s, 5m, 2h or 1d"));
  }
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds));
}

absl::StatusOr<StreamChoice> ParseStreamChoice(string_view text) {
  StreamChoice choice;
  if (ParseStreams(text, &choice.others)) return choice;
  for (const string_view entry : absl::StrSplit(text, ',')) {
    const size_t colon = entry.find(':');
    int rank = 0;
    Streams streams = Streams::kNone;
    if (colon == entry.npos || !ParseInt(entry.substr(0, colon), 0, kMaxNproc - 1, &rank) ||
        !ParseStreams(entry.substr(colon + 1), &streams)) {
      return InvalidArgumentError(
          "expected 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or one of them for some local "
          "ranks, such as 0:1,12:3");
    }
    if (!choice.ranks.emplace(rank, streams).second) {
      return InvalidArgumentError(absl::StrCat("names local rank ", rank, " twice"));
    }
  }
  return choice;
}

absl::StatusOr<std::set<int>> ParseLocalRanks(string_view text) {
  std::set<int> ranks;
  for (const string_view entry : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int rank = 0;
    if (!ParseInt(absl::StripAsciiWhitespace(entry), 0, kMaxNproc - 1, &rank)) {
      return InvalidArgumentError(
          absl::StrCat("expected local ranks from 0 to ", kMaxNproc - 1, ", such as 0,2"));
    }
    ranks.insert(rank);
  }
  return ranks;
}

std::vector<std::string> ParseFilters(string_view text) {
  std::vector<std::string> filters(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      filters.back().push_back(text[i]);
    } else if (i + 1 < text.size() && text[i + 1] == ',') {
      filters.back().push_back(text[i++]);
    } else {
      filters.emplace_back();
    }
  }
  filters.erase(std::remove(filters.begin(), filters.end(), ""), filters.end());
  return filters;
}

absl::StatusOr<Rotation> ParseRotation(string_view text) {
  Rotation rotation;
  const size_t colon = text.find(':');
  const int64_t bytes = ParseBytes(text.substr(0, colon), kMaxRotateBytes);
  const bool keep_fits =
      colon == text.npos || ParseInt(text.substr(colon + 1), 0, kMaxKeptFiles, &rotation.keep);
  if (bytes < kMinRotateBytes || !keep_fits) {
    return InvalidArgumentError(absl::StrCat("expected SIZE or SIZE:KEEP, such as 100M or 100M:5; ",
                                             "SIZE from 4K on, KEEP from 0 to ", kMaxKeptFiles));
  }
  rotation.bytes = static_cast<size_t>(bytes);
  return rotation;
}

absl::StatusOr<size_t> ParseSize(string_view text, int64_t min, int64_t max) {
  const int64_t bytes = text.empty() ? -1 : ParseBytes(text, max);
  if (bytes >= min) return static_cast<size_t>(bytes);
  return InvalidArgumentError(
      absl::StrCat("expected bytes from ", min, " to ", max, ", such as 65536, 64K, 16M or 1G"));
}

absl::StatusOr<std::vector<int>> ParseSignals(string_view text) {
  std::vector<int> signals;
  for (const string_view entry : absl::StrSplit(text, ',')) {
    const string_view name = absl::StripAsciiWhitespace(entry);
    const int number = SignalOfName(name);
    if (number == 0) {
      return InvalidArgumentError(absl::StrCat("no signal is named '", PrintableLine(name),
                                               "'; expected such as SIGTERM,SIGINT,SIGUSR1"));
    }
    if (const char* reason = WhyNotHandled(number)) {
      return InvalidArgumentError(absl::StrCat(name, " cannot be passed on: ", reason));
    }
    if (std::find(signals.begin(), signals.end(), number) == signals.end()) {
      signals.push_back(number);
    }
  }
  return signals;
}

absl::StatusOr<std::set<std::string>> ParseSet(string_view text,
                                               const std::vector<std::string>& known) {
  std::set<std::string> words;
  for (const string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      return InvalidArgumentError(absl::StrCat("'", PrintableLine(word), "' is unknown; known are ",
                                               absl::StrJoin(known, ", ")));
    }
    words.emplace(word);
  }
  if (words.empty()) {
    return InvalidArgumentError(
        absl::StrCat("expected one or more of ", absl::StrJoin(known, ", ")));
  }
  return words;
}

absl::StatusOr<LineRule> ParseLineRule(string_view text) {
  LineRule rule;
  for (const auto& [word, action] : {std::pair{"fail:", LineAction::kFail},
                                     {"warn:", LineAction::kWarn},
                                     {"metric:", LineAction::kMetric}}) {
    if (!absl::ConsumePrefix(&text, word)) continue;
    rule.action = action;
    break;
  }
  HLAUNCH_RETURN_IF_ERROR(CheckPattern(text));
  if (rule.action == LineAction::kMetric && !absl::StrContains(text, "(?P<")) {
    return InvalidArgumentError(
        "expected a group with a name to read, such as 'metric:loss=(?P<loss>[-+.0-9e]+)'");
  }
  rule.pattern = std::string(text);
  return rule;
}

absl::StatusOr<SilenceRule> ParseSilenceRule(string_view text) {
  const std::pair<string_view, string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const absl::StatusOr<Duration> limit = ParseTimeout(parts.first, kLeastSilence);
  if (!limit.ok() || !absl::StrContains(text, ':')) {
    return InvalidArgumentError(
        "expected seconds, at least 1, and the pattern of a line, such as 300:step or 5m:^epoch");
  }
  HLAUNCH_RETURN_IF_ERROR(CheckPattern(parts.second));
  return SilenceRule{std::string(parts.second), *limit};
}

absl::StatusOr<Endpoint> ParseMetricsPlace(absl::string_view text) {
  const size_t colon = text.rfind(':');
  absl::string_view address = colon == text.npos ? "127.0.0.1" : text.substr(0, colon);
  if (absl::ConsumePrefix(&address, "[")) absl::ConsumeSuffix(&address, "]");
  int port = 0;
  if (!ParseInt(text.substr(colon + 1), 0, 65535, &port) || !IsAddressLiteral(address)) {
    return absl::InvalidArgumentError(
        "expected a port from 0 to 65535; 0 takes a free one; for scrapers on other hosts write "
        "ADDRESS:PORT, as in 0.0.0.0:9400");
  }
  return Endpoint{std::string(address), static_cast<uint16_t>(port)};
}

}  // namespace hlaunch
