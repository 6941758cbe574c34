// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/output/line_folder.h"
#include "agent/output/output_lines.h"
#include "proto/base/clock.h"

namespace hlaunch {

// How the lines of one source are shown. A value.
struct LineLook {
  std::string prefix;
  bool colour = false;                     // Colours the prefix of lines shared by several ranks.
  std::shared_ptr<TerminalLine> terminal;  // As in LineCutter.
};

// The lines of several ranks on their way to our streams. A line that several ranks print is shown
// once, with all those ranks before it, as "[0-2,4-15] ".
//
// A value; `now` is an argument.
class FoldedConsole {
 public:
  // Receives bytes for our `fd`.
  using ShowFn = std::function<void(int fd, std::string bytes)>;
  explicit FoldedConsole(ShowFn show) : show_(std::move(show)) {}

  // Sets how this source's lines look from now on.
  void SetLook(LineSource source, LineLook look);

  void Add(LineSource source, absl::string_view bytes, Instant now);
  // The source writes no more; see LineFolder::EndLine.
  void End(LineSource source, Instant now) { folder_.EndLine(source, now); }
  // Shows all held lines; returns this source's unfinished line and drops it here.
  std::string TakeOver(LineSource source);

  // When Show has to be called; unset if nothing is held.
  std::optional<Instant> due() const { return folder_.due(); }
  // Shows all whole lines held.
  void Show();

 private:
  const ShowFn show_;
  LineFolder folder_;
  std::map<LineSource, LineLook> looks_;
};

}  // namespace hlaunch
