// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

namespace hlaunch {

// A variable that workers get, or, without a value, lose. A value.
struct EnvChange {
  std::string name;
  std::optional<std::string> value;
  bool is_default = false;  // The user's own wins.
};

}  // namespace hlaunch
