// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/system_journal.h"

namespace hlaunch {

inline constexpr size_t kMaxLineBytes = 1024 * 1024;
inline constexpr size_t kMaxTailLines = 20;

// The terminal's current line, where the cursor is; shared by all streams shown there. A value.
struct TerminalLine {
  bool holds_bar = false;  // It shows a bar that the next unit is to replace.
};

// Cuts the bytes of one stream into units that can be interleaved with those of other streams:
// lines, and the states of a progress bar, which end with '\r'. Each gets the prefix. If there is
// no prefix, there are no other streams: every byte passes unchanged at once, up to the end of the
// last line, unless AlwaysCut was called. A value.
//
// On a terminal the bars of several streams take turns on one line. A unit that follows a bar
// erases it. A bar that begins with '\r' is shown as soon as it comes, not when the next one comes.
//
// A line that waits for its end may be shown before, see ShowPending. What comes next continues it,
// unless HidePending was called: then the whole line is returned once more.
class LineCutter {
 public:
  // `terminal` is shared by all cutters of one terminal; null if the output goes to none.
  explicit LineCutter(std::string prefix, std::shared_ptr<TerminalLine> terminal = nullptr)
      : prefix_(std::move(prefix)), terminal_(std::move(terminal)) {}

  // Cuts even if there is no prefix.
  void AlwaysCut() { always_cuts_ = true; }
  // Applies to later units.
  void SetPrefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Takes the next bytes; returns the complete units. A line longer than kMaxLineBytes is split
  // into several lines; without a prefix, into parts of the one line.
  std::string Feed(absl::string_view bytes);
  // Call this at the end of the stream: returns what was not returned of the last line if no
  // newline ended it, with a newline, or as it is if `keeps_end`.
  std::string Finish(bool keeps_end = false);

  // Returns what is pending of a line and was not shown yet, with the prefix if none was; empty if
  // that is a bar or is very long.
  std::string ShowPending();
  // Something else has ended the shown line.
  void HidePending() { shown_ = 0; }
  // True if the last unit is unfinished and was shown.
  bool shows_pending() const { return shown_ > 0; }

  // True if the next byte begins a line.
  bool at_line_start() const { return pending_.empty() && !after_cr_ && !in_bar_; }

 private:
  void AddUnit(absl::string_view rest, absl::string_view end, std::string* out);
  void AddLines(absl::string_view bytes, std::string* out);

  std::string prefix_;
  std::shared_ptr<TerminalLine> terminal_;
  std::string pending_;
  size_t shown_ = 0;  // How many of the pending bytes were shown, after the prefix.
  bool always_cuts_ = false;
  bool after_cr_ = false;  // The bytes so far end in a '\r' that was already returned.
  bool in_bar_ = false;    // The pending bytes follow a '\r'.
  bool mid_line_ = false;  // Bytes that passed unchanged have not ended their line.
};

// Picks the lines of one stream that contain any of some words, and adds the prefix. A value.
class LineFilter {
 public:
  LineFilter(std::string prefix, std::vector<std::string> words)
      : prefix_(std::move(prefix)), words_(std::move(words)) {}

  std::string Feed(absl::string_view bytes);
  // Call this at the end of the stream: returns the last line, filtered, if no newline ended it.
  std::string Finish() { return pending_.empty() ? "" : Feed("\n"); }

 private:
  std::string prefix_;
  std::vector<std::string> words_;
  std::string pending_;
};

// Cuts the bytes of one stream into entries of systemd's journal: one for each line, with the
// prefix and some fields. Only the last state of a progress bar is entered. A value.
class JournalCutter {
 public:
  // A longer line is split, as by journald itself.
  static constexpr size_t kMaxLine = 48 * 1024;

  JournalCutter(std::string prefix, JournalFields fields)
      : prefix_(std::move(prefix)), fields_(std::move(fields)) {}

  std::vector<std::string> Feed(absl::string_view bytes);
  // Call this at the end of the stream: returns the last line if no newline ended it.
  std::vector<std::string> Finish();

 private:
  std::string Entry(absl::string_view line) const;

  std::string prefix_;
  JournalFields fields_;
  std::string pending_;
};

// Keeps the last lines of one stream. Of a long line it keeps the head, which says what the line
// is. A value.
class OutputTail {
 public:
  void Add(absl::string_view bytes);
  // At most kMaxTailLines lines and kMaxTailBytes bytes of printable UTF-8, with '?' for other
  // bytes. A progress bar appears in its last state.
  std::string Text() const;
  // All lines that are kept, 16 KiB or more, in the same form.
  std::string LongText() const;

 private:
  void AddOfLine(absl::string_view piece);

  std::string bytes_;
  size_t line_bytes_ = 0;  // How many bytes of the unfinished line are kept.
};

}  // namespace hlaunch
