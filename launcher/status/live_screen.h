// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/status/status_screen.h"

namespace hlaunch {

// What there is to see at one moment.
struct LiveFrame {
  // The lines for a screen; called again when the terminal's size changes.
  std::function<std::vector<std::string>(const ScreenSize& size)> draw;
  std::string about;  // Where this changes, a log is told anew; it does not change with the clock.
  bool last = false;  // Nothing will change any more.
};

// Shows on stdout what `look` sees, about once a second. On a terminal it is drawn in place, on the
// other screen, until q, Ctrl-C, SIGTERM or the last frame, which then stays on the first screen.
// Elsewhere it is a block of lines whenever something has changed, and each minute.
//
// Blocks those signals for the calling thread and those that `look` starts; so it is called once,
// before there are others. `look` may block for a second or two. If the first frame is the last
// and has no line, nothing is written.
void WatchLive(const std::function<LiveFrame()>& look);

}  // namespace hlaunch
