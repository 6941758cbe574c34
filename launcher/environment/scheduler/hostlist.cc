// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/scheduler/hostlist.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr size_t kMaxText = 1 << 20;
constexpr size_t kMaxDigits = 18;        // As many as an int64 holds.
constexpr uint64_t kMaxRange = 1 << 16;  // Slurm's own limit on one range.
// The longest name of a host; 65536 longer names would fill the memory.
constexpr size_t kMaxName = 255;
constexpr size_t kMaxShown = 60;  // How much of a word a message shows.

struct Range {
  uint64_t low = 0;
  uint64_t count = 0;
  int width = 0;  // The number of digits of the low end, with its zeros.
};

// "rack[1-2]n[01-04]": texts[i] stands before brackets[i].
struct Item {
  std::vector<std::string> texts;
  std::vector<std::vector<Range>> brackets;
};

absl::Status Wrong(string_view word, string_view why) {
  return InvalidArgumentError(absl::StrCat("'", PrintableLine(word.substr(0, kMaxShown)),
                                           word.size() > kMaxShown ? "...'" : "'", why));
}

bool IsNumber(string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

absl::StatusOr<Range> ParseRange(string_view text) {
  const std::vector<string_view> ends = absl::StrSplit(text, absl::MaxSplits('-', 1));
  Range range;
  uint64_t high = 0;
  if (!IsNumber(ends.front()) || !IsNumber(ends.back()) ||
      !absl::SimpleAtoi(ends.front(), &range.low) || !absl::SimpleAtoi(ends.back(), &high)) {
    return Wrong(text, " in brackets: expected a number or LOW-HIGH");
  }
  if (high < range.low) return Wrong(text, " in brackets goes down");
  range.count = high - range.low + 1;
  if (range.count > kMaxRange)
    return Wrong(text, absl::StrCat(" in brackets is more than ", kMaxRange, " numbers"));
  range.width = static_cast<int>(ends.front().size());
  return range;
}

absl::StatusOr<Item> ParseItem(string_view word) {
  Item item;
  string_view rest = word;
  while (true) {
    const size_t open = rest.find_first_of("[]");
    item.texts.emplace_back(rest.substr(0, open));
    if (open == rest.npos) break;
    if (rest[open] == ']') return Wrong(word, ": a ] without its [");
    const size_t close = rest.find(']', open);
    if (close == rest.npos) return Wrong(word, ": a [ without its ]");
    std::vector<Range> ranges;
    for (const string_view range : absl::StrSplit(rest.substr(open + 1, close - open - 1), ',')) {
      HLAUNCH_ASSIGN_OR_RETURN(ranges.emplace_back(), ParseRange(range));
    }
    item.brackets.push_back(std::move(ranges));
    rest.remove_prefix(close + 1);
    if (rest.empty()) return item;
  }
  if (!item.brackets.empty()) return Wrong(word, ": text behind the last bracket");
  return item;
}

// Returns the numbers of a bracket as text.
std::vector<std::string> NumbersOf(const std::vector<Range>& ranges) {
  std::vector<std::string> numbers;
  for (const Range& range : ranges) {
    for (uint64_t i = 0; i < range.count; ++i) {
      numbers.push_back(absl::StrFormat("%0*d", range.width, range.low + i));
    }
  }
  return numbers;
}

// Returns the length of the longest host name.
size_t MaxName(const Item& item) {
  size_t length = 0;
  for (const std::string& text : item.texts) length += text.size();
  for (const std::vector<Range>& ranges : item.brackets) {
    size_t digits = 0;
    for (const Range& range : ranges) {
      const std::string high = absl::StrFormat("%0*d", range.width, range.low + range.count - 1);
      digits = std::max(digits, high.size());
    }
    length += digits;
  }
  return length;
}

uint64_t CountHosts(const Item& item, uint64_t limit) {
  uint64_t hosts = 1;
  for (const std::vector<Range>& ranges : item.brackets) {
    uint64_t numbers = 0;
    for (const Range& range : ranges) numbers = std::min(limit + 1, numbers + range.count);
    hosts = std::min(limit + 1, hosts * numbers);  // Both are below 2^33.
  }
  return hosts;
}

// Requires: `item` stands for few enough hosts.
void AppendHosts(const Item& item, std::vector<std::string>& hosts) {
  const size_t brackets = item.brackets.size();
  if (brackets == 0) {
    hosts.push_back(item.texts[0]);
    return;
  }
  std::vector<std::vector<std::string>> numbers;
  for (const std::vector<Range>& ranges : item.brackets) numbers.push_back(NumbersOf(ranges));
  std::vector<size_t> at(brackets, 0);
  while (true) {
    std::string host;
    for (size_t i = 0; i < brackets; ++i) absl::StrAppend(&host, item.texts[i], numbers[i][at[i]]);
    hosts.push_back(std::move(host));
    // The last bracket counts fastest, then the first, the second and so on.
    size_t turn = 0;
    for (; turn < brackets; ++turn) {
      const size_t i = turn == 0 ? brackets - 1 : turn - 1;
      if (++at[i] < numbers[i].size()) break;
      at[i] = 0;
    }
    if (turn == brackets) return;
  }
}

// Returns where the word at the beginning of `text` ends: at a comma or blank outside of brackets.
size_t WordEnd(string_view text) {
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (!inside && (text[i] == ',' || absl::ascii_isspace(text[i]))) return i;
  }
  return text.size();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandHostlist(string_view text, size_t max_hosts) {
  if (text.size() > kMaxText) return InvalidArgumentError("longer than a mebibyte");
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const string_view word = text.substr(0, WordEnd(text));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    if (!std::all_of(word.begin(), word.end(), absl::ascii_isgraph)) {
      return Wrong(word, ": expected printable ASCII");
    }
    HLAUNCH_ASSIGN_OR_RETURN(const Item item, ParseItem(word));
    if (MaxName(item) > kMaxName) {
      return Wrong(word, absl::StrCat(": a host's name has at most ", kMaxName, " characters"));
    }
    if (hosts.size() + CountHosts(item, max_hosts) > max_hosts) {
      return InvalidArgumentError(absl::StrCat("more than ", max_hosts, " hosts"));
    }
    AppendHosts(item, hosts);
  }
  return hosts;
}

absl::StatusOr<std::vector<int>> ExpandCounts(string_view text, size_t max_nodes) {
  std::vector<int> counts;
  for (const string_view word : absl::StrSplit(text, ',')) {
    string_view count_text = word, repeat_text = "1";
    if (const size_t open = word.find("(x"); open != word.npos) {
      count_text = word.substr(0, open);
      repeat_text = word.substr(open + 2);
      if (!absl::ConsumeSuffix(&repeat_text, ")")) repeat_text = "";
    }
    int count = 0, repeat = 0;
    if (!IsNumber(count_text) || !IsNumber(repeat_text) || !absl::SimpleAtoi(count_text, &count) ||
        !absl::SimpleAtoi(repeat_text, &repeat) || repeat < 1) {
      return Wrong(word, ": expected counts such as 3,1(x2)");
    }
    if (counts.size() + static_cast<size_t>(repeat) > max_nodes) {
      return InvalidArgumentError(absl::StrCat("more than ", max_nodes, " nodes"));
    }
    counts.insert(counts.end(), static_cast<size_t>(repeat), count);
  }
  return counts;
}

}  // namespace hlaunch
