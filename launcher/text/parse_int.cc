// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/parse_int.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace hlaunch {

bool ParseInt(absl::string_view text, int min, int max, int* out) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  return digits && absl::SimpleAtoi(text, out) && *out >= min && *out <= max;
}

}  // namespace hlaunch
