// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

namespace hlaunch {

// An environment variable that workers get, or lose if it has no value. A value.
struct EnvChange {
  std::string name;
  std::optional<std::string> value;
  bool is_default = false;  // A value that the user has set wins.
};

}  // namespace hlaunch
