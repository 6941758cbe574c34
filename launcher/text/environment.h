// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// A copy of the environment variables of a process. A value.
class Environment {
 public:
  Environment() = default;
  // Each of `entries` is `NAME=value`.
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {}

  // Copies the environment of this process. Call before other threads start.
  static Environment OfThisProcess();

  // Returns the value of `name`, or an empty string if it is unset. hlaunch treats unset and empty
  // variables alike.
  std::string Get(absl::string_view name) const;

  // Returns whether a variable is set whose name begins with `start`.
  bool HasAny(absl::string_view start) const;

  // Returns all entries except that of `name`.
  std::vector<std::string> Without(absl::string_view name) const;

 private:
  std::vector<std::string> entries_;
};

// Unsets the variable `name` of this process, and overwrites its value, which the kernel shows to
// the user's other processes in /proc/PID/environ. Copies made before stay. Call before other
// threads start.
void WipeFromEnvironment(const char* name);

}  // namespace hlaunch
