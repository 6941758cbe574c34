// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/report/status/status_screen.h"

namespace hlaunch {

// What is shown at one moment.
struct LiveFrame {
  // The lines for a screen; called again when the terminal's size changes.
  std::function<std::vector<std::string>(const ScreenSize& size)> draw;
  std::string about;  // A log gets a new block when this changes; it ignores the clock.
  bool last = false;  // Nothing will change after this.
};

// Shows on stdout what `look` sees, about once a second. On a terminal it draws in place, on the
// alternate screen, until q, Ctrl-C, SIGTERM or the last frame; the last frame then stays on the
// normal screen. Elsewhere it prints a block of lines after each change, and once a minute.
//
// Blocks those signals for the calling thread and for threads that `look` starts. So call it once,
// before there are other threads. `look` may block for a second or two. If the first frame is the
// last one and has no line, nothing is written.
void WatchLive(const std::function<LiveFrame()>& look);

}  // namespace hlaunch
