// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/report/status/status_model.h"

// A job's status as lines for a terminal. Pure.

namespace hlaunch {

// The size of the screen, and whether colours may be used.
struct ScreenSize {
  size_t columns = 80;
  size_t lines = 0;  // 0: no limit.
  bool colour = false;
};

// The status in lines without their ends; no line is wider than the screen. If there are more lines
// than fit, the last one says so.
std::vector<std::string> StatusScreen(const StatusModel& model, const ScreenSize& size);

// Cuts any printable text into such lines; a line that is too wide is cut off.
std::vector<std::string> TextScreen(absl::string_view text, const ScreenSize& size);

}  // namespace hlaunch
