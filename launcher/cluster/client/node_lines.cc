// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/node_lines.h"

#include <unistd.h>

#include <utility>

namespace hlaunch {
namespace {

constexpr size_t kLongestJoined = 1 << 20;

}  // namespace

std::vector<LogLine> NodeLines::Take(absl::string_view text) {
  std::vector<LogLine> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    LogLine line = ReadLogLine(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    std::optional<LogLine>& open = open_[line.fd == STDERR_FILENO ? 1 : 0];
    if (open.has_value()) {
      open->text += line.text;
      open->whole = line.whole;
      line = *std::exchange(open, std::nullopt);
    }
    if (line.whole || line.text.size() >= kLongestJoined) {
      lines.push_back(std::move(line));
    } else {
      open = std::move(line);
    }
  }
  return lines;
}

std::vector<LogLine> NodeLines::Rest() {
  std::vector<LogLine> lines;
  for (std::optional<LogLine>& open : open_) {
    if (!open.has_value()) continue;
    open->whole = true;
    lines.push_back(*std::exchange(open, std::nullopt));
  }
  return lines;
}

}  // namespace hlaunch
