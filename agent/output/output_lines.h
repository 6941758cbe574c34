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

// The line of a terminal where the cursor is, for all streams that the terminal shows. A value.
struct TerminalLine {
  bool holds_bar = false;  // It shows what the next unit is to replace.
};

// Cuts the bytes of one stream into units that may stand between those of other streams: lines,
// and what a progress bar rewrites with '\r'. Each gets the prefix. Without a prefix there are
// no other streams, and every byte passes at once and unchanged, unless AlwaysCut. A value.
//
// On a terminal bars of several streams take turns on one line: a unit that follows a bar erases
// it, and a bar that begins with '\r' is shown as soon as it came, not when the next one does.
class LineCutter {
 public:
  // `terminal` is shared by all cutters of one terminal; null where none reads the output.
  explicit LineCutter(std::string prefix, std::shared_ptr<TerminalLine> terminal = nullptr)
      : prefix_(std::move(prefix)), terminal_(std::move(terminal)) {}

  // Cuts also where there is no prefix.
  void AlwaysCut() { always_cuts_ = true; }
  // Of units from now on.
  void SetPrefix(std::string prefix) { prefix_ = std::move(prefix); }

  // Takes the next bytes; returns what is complete. A line beyond kMaxLineBytes comes in pieces,
  // each a line.
  std::string Feed(absl::string_view bytes);
  // At the end of the stream: the last line, if nothing ended it, as a line.
  std::string Finish();

  // Whether the next byte begins a line.
  bool at_line_start() const { return pending_.empty() && !after_cr_ && !in_bar_; }

 private:
  void AddUnit(absl::string_view rest, absl::string_view end, std::string* out);
  void AddLines(absl::string_view bytes, std::string* out);

  std::string prefix_;
  std::shared_ptr<TerminalLine> terminal_;
  std::string pending_;
  bool always_cuts_ = false;
  bool after_cr_ = false;  // The bytes so far end in a '\r' that is out already.
  bool in_bar_ = false;    // What is pending follows a '\r'.
};

// Picks the lines of one stream that hold any of some words, each with the prefix. A value.
class LineFilter {
 public:
  LineFilter(std::string prefix, std::vector<std::string> words)
      : prefix_(std::move(prefix)), words_(std::move(words)) {}

  std::string Feed(absl::string_view bytes);
  // At the end of the stream: the last line, if nothing ended it.
  std::string Finish() { return pending_.empty() ? "" : Feed("\n"); }

 private:
  std::string prefix_;
  std::vector<std::string> words_;
  std::string pending_;
};

// Cuts the bytes of one stream into entries of systemd's journal: a line each, with the prefix and
// some fields; of a progress bar the last state. A value.
class JournalCutter {
 public:
  // A longer line comes in pieces, as from journald itself.
  static constexpr size_t kMaxLine = 48 * 1024;

  JournalCutter(std::string prefix, JournalFields fields)
      : prefix_(std::move(prefix)), fields_(std::move(fields)) {}

  std::vector<std::string> Feed(absl::string_view bytes);
  // At the end of the stream: the last line, if nothing ended it.
  std::vector<std::string> Finish();

 private:
  std::string Entry(absl::string_view line) const;

  std::string prefix_;
  JournalFields fields_;
  std::string pending_;
};

// The last lines of one stream; of a long one its head, which says what it is. A value.
class OutputTail {
 public:
  void Add(absl::string_view bytes);
  // At most kMaxTailLines lines and kMaxTailBytes bytes of printable UTF-8, '?' for the rest.
  // Of a progress bar the last state.
  std::string Text() const;
  // All lines that are kept, of 16 KiB or more, in the same form.
  std::string LongText() const;

 private:
  void AddOfLine(absl::string_view piece);

  std::string bytes_;
  size_t line_bytes_ = 0;  // Kept of the line that has not ended.
};

}  // namespace hlaunch
