// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/status/status_model.h"

// A job's status in the lines of a terminal. Pure.

namespace hlaunch {

// How much fits, and whether colours may be used.
struct ScreenSize {
  size_t columns = 80;
  size_t lines = 0;  // 0: as many as there are.
  bool colour = false;
};

// The status in lines without their ends, none wider than the screen. If there are more than fit,
// the last one says so.
std::vector<std::string> StatusScreen(const StatusModel& model, const ScreenSize& size);

// Any printable text cut into such lines: longer ones are cut off.
std::vector<std::string> TextScreen(absl::string_view text, const ScreenSize& size);

}  // namespace hlaunch
