// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/status_screen.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/report/status/time_words.h"
#include "launcher/text/text_table.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr size_t kBarColumns = 20;
constexpr size_t kMostRounds = 8;
constexpr size_t kMostShownLines = 12;
constexpr char kOff[] = "\x1b[0m";

const char* ColourOf(Light light) {
  switch (light) {
    case Light::kGood:
      return "\x1b[1;34m";
    case Light::kWaiting:
      return "\x1b[1;33m";
    case Light::kBad:
      return "\x1b[1;31m";
    case Light::kIdle:
      break;
  }
  return "\x1b[1m";
}

// Ends the text with ">" if it was cut.
std::string Cut(string_view text, size_t columns) { return CutToColumns(text, columns, ">"); }

std::string Padded(string_view text, size_t columns) {
  const size_t has = ColumnsOf(text);
  return absl::StrCat(text, std::string(columns - std::min(has, columns), ' '));
}

// Breaks `text` at blanks and indents all lines.
std::vector<std::string> Wrapped(string_view text, size_t columns, size_t indent) {
  std::vector<std::string> lines;
  const std::string blanks(indent, ' ');
  std::string line;
  for (const string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!line.empty() && ColumnsOf(line) + 1 + ColumnsOf(word) > columns) {
      lines.push_back(std::exchange(line, ""));
    }
    absl::StrAppend(&line, line.empty() ? blanks : " ", word);
  }
  if (!line.empty()) lines.push_back(line);
  for (std::string& one : lines) one = Cut(one, columns);
  return lines;
}

char SignOf(RoundPhase::Kind kind) {
  switch (kind) {
    case RoundPhase::Kind::kGathering:
      return '.';
    case RoundPhase::Kind::kChecking:
      return '?';
    case RoundPhase::Kind::kRunning:
      return '=';
    case RoundPhase::Kind::kStopping:
      break;
  }
  return '!';
}

class Screen {
 public:
  Screen(const StatusModel& model, const ScreenSize& size) : model_(model), size_(size) {}

  std::vector<std::string> Draw() {
    Header();
    Awaited();
    Rounds();
    Nodes();
    LastLines();
    Health();
    Commands();
    return std::move(lines_);
  }

 private:
  // Adds a line in which `text` has the colour of `light`.
  void Add(string_view before, Light light, string_view text, string_view after = "") {
    std::string whole = Cut(absl::StrCat(before, text, after), size_.columns);
    absl::StripTrailingAsciiWhitespace(&whole);
    if (!size_.colour || whole.size() < before.size() + text.size()) return lines_.push_back(whole);
    lines_.push_back(absl::StrCat(before, ColourOf(light), text, kOff,
                                  whole.substr(before.size() + text.size())));
  }
  void Add(string_view text) {
    lines_.push_back(Cut(absl::StripTrailingAsciiWhitespace(text), size_.columns));
  }
  void AddWrapped(string_view text, size_t indent) {
    for (std::string& line : Wrapped(text, size_.columns, indent))
      lines_.push_back(std::move(line));
  }
  void Title(string_view text) {
    lines_.push_back("");
    Add("", Light::kIdle, text);
  }

  void Header() {
    const std::string left = absl::StrCat("  ", model_.job);
    const size_t used = ColumnsOf(model_.state) + ColumnsOf(left) + ColumnsOf(model_.told);
    const size_t gap = size_.columns > used + 2 ? size_.columns - used : 2;
    Add("", model_.light, model_.state, absl::StrCat(left, std::string(gap, ' '), model_.told));
    AddWrapped(model_.sentence, 0);
    lines_.push_back("");
    std::vector<std::string> facts;
    std::string line;
    for (const Fact& fact : model_.facts) {
      const std::string text = absl::StrCat(fact.name, ": ", fact.value);
      if (!line.empty() && ColumnsOf(line) + 3 + ColumnsOf(text) > size_.columns) {
        Add(line);
        line.clear();
      }
      absl::StrAppend(&line, line.empty() ? "" : "   ", text);
    }
    if (!line.empty()) Add(line);
  }

  void Awaited() {
    if (model_.awaited.empty()) return;
    Title("AWAITED");
    for (const std::string& line : model_.awaited) Add("  ", Light::kBad, line);
  }

  std::string Bar(const RoundRow& row) const {
    std::string bar(kBarColumns, ' ');
    const int64_t span = std::max<int64_t>(model_.line_to_ms - model_.line_from_ms, 1);
    const auto at = [&](int64_t ms) {
      const auto columns = static_cast<int64_t>(kBarColumns);
      return std::clamp<int64_t>((ms - model_.line_from_ms) * columns / span, 0, columns - 1);
    };
    for (const RoundPhase& phase : row.phases) {
      for (int64_t i = at(phase.from_ms); i <= at(phase.to_ms - 1); ++i) {
        bar[static_cast<size_t>(i)] = SignOf(phase.kind);
      }
    }
    return bar;
  }

  void Rounds() {
    if (model_.rounds.empty()) return;
    Title(absl::StrCat("ROUNDS  from ", ClockWords(model_.line_from_ms), " to ",
                       ClockWords(model_.line_to_ms), "; . gathers ? checks = runs ! stops"));
    for (size_t i = 0; i < std::min(model_.rounds.size(), kMostRounds); ++i) {
      const RoundRow& row = model_.rounds[i];
      const std::string what = row.end.empty() ? row.size : row.end;
      const std::string ran = row.ran.empty() ? "has not run" : absl::StrCat("ran ", row.ran);
      const std::string head =
          absl::StrCat("  ", Padded(row.name, 5), "|", Bar(row), "| ", Padded(ran, 15), " ");
      const std::vector<std::string> words =
          Wrapped(what, std::max<size_t>(size_.columns, ColumnsOf(head) + 20) - ColumnsOf(head), 0);
      Add(absl::StrCat(head, words.empty() ? "" : words[0]));
      for (size_t k = 1; k < std::min<size_t>(words.size(), 3); ++k) {
        Add(absl::StrCat(std::string(ColumnsOf(head), ' '), words[k],
                         k == 2 && words.size() > 3 ? " ..." : ""));
      }
    }
    if (model_.rounds.size() > kMostRounds) {
      Add(absl::StrCat("  and ", model_.rounds.size() - kMostRounds, " before"));
    }
  }

  void Nodes() {
    const NodeGroups& nodes = model_.nodes;
    if (nodes.rows.empty() && nodes.folds.empty()) return;
    Title("NODES  a letter a worker: R runs W waits C checked S stops X failed ? silent");
    for (const NodeFold& fold : nodes.folds) {
      Add(absl::StrCat("  ", fold.nodes, " nodes with ", fold.workers, " workers alike: "),
          fold.light, fold.state, absl::StrCat("; ", fold.hosts));
    }
    size_t host = 4, state = 7;
    for (const NodeRow& row : nodes.rows) {
      host = std::clamp<size_t>(ColumnsOf(row.host), host, 24);
      state = std::clamp<size_t>(ColumnsOf(row.state), state, 28);
    }
    for (const NodeRow& row : nodes.rows) {
      Add(absl::StrCat("  ", Padded(row.rank, 5), Padded(Cut(row.host, host), host), "  "),
          row.light, Padded(Cut(row.state, state), state),
          absl::StrCat("  ", Padded(row.ranks, 10), row.cells, row.note.empty() ? "" : "  ",
                       row.note));
    }
    if (nodes.unlisted > 0) Add(absl::StrCat("  and ", nodes.unlisted, " more"));
  }

  void LastLines() {
    if (model_.last_lines_of.empty()) return;
    Title("LAST LINES");
    AddWrapped(absl::StrCat("of ", model_.last_lines_of, model_.last_lines.empty() ? "" : ":"), 2);
    const size_t all = model_.last_lines.size();
    for (size_t i = all - std::min(all, kMostShownLines); i < all; ++i) {
      Add(absl::StrCat("  | ", model_.last_lines[i]));
    }
  }

  void Health() {
    if (model_.health.empty() && model_.figures.empty()) return;
    Title("HEALTH");
    for (const std::string& line : model_.health) AddWrapped(line, 2);
    for (const FigureRow& row : model_.figures) {
      const std::string head = absl::StrCat("  ", Padded(row.name, 14), Padded(row.range, 26));
      Add(head, Light::kBad, row.odd);
    }
  }

  void Commands() {
    if (model_.commands.empty()) return;
    Title("ASK FURTHER");
    for (const std::string& line : model_.commands) Add(absl::StrCat("  ", line));
  }

  const StatusModel& model_;
  const ScreenSize size_;
  std::vector<std::string> lines_;
};

std::vector<std::string> Fit(std::vector<std::string> lines, const ScreenSize& size) {
  if (size.lines == 0 || lines.size() <= size.lines) return lines;
  const size_t more = lines.size() - size.lines + 1;
  lines.resize(size.lines - 1);
  lines.push_back(Cut(absl::StrCat("... ", more, " more lines"), size.columns));
  return lines;
}

}  // namespace

std::vector<std::string> StatusScreen(const StatusModel& model, const ScreenSize& size) {
  return Fit(Screen(model, size).Draw(), size);
}

std::vector<std::string> TextScreen(string_view text, const ScreenSize& size) {
  std::vector<std::string> lines;
  for (const string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    lines.push_back(Cut(line, size.columns));
  }
  return Fit(std::move(lines), size);
}

}  // namespace hlaunch
