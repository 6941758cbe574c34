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

// What stands around the lines of one source. A value.
struct LineLook {
  std::string prefix;
  bool colour = false;                     // Of the prefix of lines that several ranks share.
  std::shared_ptr<TerminalLine> terminal;  // As of LineCutter.
};

// The lines of several ranks on their way to our streams: what several of them say is shown once,
// with all their ranks before it, as "[0-2,4-15] ".
//
// A value; `now` is an argument.
class FoldedConsole {
 public:
  // Takes bytes for our `fd`.
  using ShowFn = std::function<void(int fd, std::string bytes)>;
  explicit FoldedConsole(ShowFn show) : show_(std::move(show)) {}

  // How this source's lines look from now on.
  void SetLook(LineSource source, LineLook look);

  void Add(LineSource source, absl::string_view bytes, Instant now);
  // The source writes no more; see LineFolder::EndLine.
  void End(LineSource source, Instant now) { folder_.EndLine(source, now); }
  // Shows what is held, and takes the line that this source has begun.
  std::string TakeOver(LineSource source);

  // When Show is to be called; unset while nothing is held.
  std::optional<Instant> due() const { return folder_.due(); }
  // Shows all whole lines that are held.
  void Show();

 private:
  const ShowFn show_;
  LineFolder folder_;
  std::map<LineSource, LineLook> looks_;
};

}  // namespace hlaunch
