// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/line_matcher.h"

#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"

namespace hlaunch {

struct LinePatterns::Pattern {
  std::unique_ptr<const RE2> regex;
  std::map<int, std::string> names;  // The groups that have a name.
};

LinePatterns::LinePatterns() = default;
LinePatterns::~LinePatterns() = default;

absl::StatusOr<std::shared_ptr<const LinePatterns>> LinePatterns::Compile(
    const std::vector<std::string>& patterns) {
  RE2::Options options;
  options.set_log_errors(false);
  std::shared_ptr<LinePatterns> compiled(new LinePatterns());
  for (const std::string& pattern : patterns) {
    auto regex = std::make_unique<const RE2>(pattern, options);
    if (!regex->ok()) return absl::InvalidArgumentError(regex->error());
    std::map<int, std::string> names = regex->CapturingGroupNames();
    compiled->patterns_.push_back({std::move(regex), std::move(names)});
  }
  return std::shared_ptr<const LinePatterns>(std::move(compiled));
}

std::vector<LineMatch> LinePatterns::Find(absl::string_view line) const {
  const re2::StringPiece text(line.data(), line.size());
  std::vector<LineMatch> found;
  for (size_t i = 0; i < patterns_.size(); ++i) {
    const Pattern& pattern = patterns_[i];
    // Without named groups only the match itself is needed, which RE2 finds faster.
    const int last = pattern.names.empty() ? -1 : pattern.names.rbegin()->first;
    std::vector<re2::StringPiece> groups(static_cast<size_t>(last + 1));
    if (!pattern.regex->Match(text, 0, text.size(), RE2::UNANCHORED, groups.data(), last + 1)) {
      continue;
    }
    LineMatch match{i, std::string(line), {}};
    for (const auto& [group, name] : pattern.names) {
      const re2::StringPiece& word = groups[static_cast<size_t>(group)];
      double value = 0;
      if (absl::SimpleAtod({word.data(), word.size()}, &value)) match.values[name] = value;
    }
    found.push_back(std::move(match));
  }
  return found;
}

std::vector<LineMatch> LineMatcher::Feed(absl::string_view bytes) {
  std::vector<LineMatch> found;
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    const absl::string_view piece = bytes.substr(0, end);
    const size_t room = kMaxMatchedLine - pending_.size();
    pending_.append(piece.data(), std::min(piece.size(), room));
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 1);
    for (LineMatch& match : patterns_->Find(pending_)) found.push_back(std::move(match));
    pending_.clear();
  }
  return found;
}

}  // namespace hlaunch
