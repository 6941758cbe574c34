// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/line_printer.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/cli/values/seconds.h"
#include "launcher/text/printable.h"
#include "nlohmann/json.hpp"
#include "proto/base/wall_time.h"

namespace hlaunch {
namespace {

bool IsTimeText(absl::string_view text) {
  return text.size() >= 10 && text.size() <= 24 && text[4] == '-' && text[7] == '-' &&
         text.find_first_not_of("0123456789-:.TZ") == text.npos &&
         std::all_of(text.begin(), text.begin() + 4, absl::ascii_isdigit);
}

}  // namespace

absl::StatusOr<std::string> ReadSince(absl::string_view text, int64_t now_ms) {
  constexpr double kMost = 1e11;  // Seconds.
  if (text.empty() || IsTimeText(text)) return std::string(text);
  const std::optional<double> span = ReadSeconds(text);
  if (span && *span >= 0 && *span <= kMost) {
    return WallTime(std::max<int64_t>(now_ms - static_cast<int64_t>(*span * 1000), 0));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--since '", PrintableLine(text),
                   "': expected a span as in 30s, 10m, 2h or 1d, or a time in UTC as in "
                   "2026-11-25T16:41"));
}

void LinePrinter::Show(const LogLine& line) {
  if (IsWanted(line)) Put(line);
}

bool LinePrinter::IsWanted(const LogLine& line) {
  Part& part = parts_[line.fd == STDERR_FILENO ? 1 : 0];
  if (!part.goes_on) part.wanted = Passes(line);
  part.goes_on = !line.whole;
  return part.wanted;
}

// Whether --rank and --since let a line pass that begins like this.
bool LinePrinter::Passes(const LogLine& line) const {
  if (!since_.empty() && !line.time.empty() && line.time < since_) return false;
  if (options_.ranks.empty()) return true;
  const std::vector<Rank> ranks = RanksOfText(line.text);
  return std::any_of(ranks.begin(), ranks.end(), [this](Rank rank) {
    return std::binary_search(options_.ranks.begin(), options_.ranks.end(), rank);
  });
}

void LinePrinter::Put(const LogLine& line) const {
  if (!both_streams_ || line.fd == STDOUT_FILENO) return PutTo(line, stdout);
  std::fflush(stdout);  // Keeps the order of both streams.
  PutTo(line, stderr);
}

void LinePrinter::PutTo(const LogLine& line, std::FILE* file) const {
  std::string text = absl::StrCat(line.text, line.whole ? "\n" : "");
  if (options_.json) {
    text = nlohmann::ordered_json{{"time", line.time},
                                  {"stream", line.fd == STDERR_FILENO ? "stderr" : "stdout"},
                                  {"whole", line.whole},
                                  {"ranks", RanksOfText(line.text)},
                                  {"text", line.text}}
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
           "\n";
  } else if (options_.timestamps && !line.time.empty()) {
    text = absl::StrCat(line.time, " ", text);
  }
  std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace hlaunch
