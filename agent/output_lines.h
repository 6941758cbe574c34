// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace hlaunch {

inline constexpr size_t kMaxLineBytes = 64 * 1024;
inline constexpr size_t kMaxTailLines = 20;

// Cuts the bytes of one stream into units that may stand between those of other streams: lines,
// and what a progress bar rewrites with '\r'. Each gets the prefix. Without a prefix there are
// no other streams, and every byte passes at once and unchanged. A value.
class LineCutter {
 public:
  explicit LineCutter(std::string prefix) : prefix_(std::move(prefix)) {}

  // Takes the next bytes; returns what is complete. A line beyond kMaxLineBytes comes in pieces,
  // each a line.
  std::string Feed(absl::string_view bytes);
  // At the end of the stream: the last line, if nothing ended it, as a line.
  std::string Finish();

 private:
  void AddUnit(absl::string_view rest, absl::string_view end, std::string* out);

  std::string prefix_;
  std::string pending_;
  bool after_cr_ = false;  // The bytes so far end in a '\r' that is out already.
};

// The last lines of one stream. A value.
class OutputTail {
 public:
  void Add(absl::string_view bytes);
  // At most kMaxTailLines lines and kMaxTailBytes bytes of printable UTF-8, '?' for the rest.
  // Of a progress bar the last state.
  std::string Text() const;

 private:
  std::string bytes_;
};

}  // namespace hlaunch
