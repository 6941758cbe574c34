// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

// Times and spans in words. Pure.

namespace hlaunch {

// "0.4 s", "7 s", "2 min 3 s", "3 h 12 min", "2 d 4 h".
std::string SpanWords(int64_t ms);

// "16:41:07" in UTC; empty for 0, which means unknown.
std::string ClockWords(int64_t wall_ms);

// "2026-11-25 16:41:07 UTC"; empty for 0.
std::string DateWords(int64_t wall_ms);

}  // namespace hlaunch
