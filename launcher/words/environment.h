// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The environment variables of a process, taken once. A value.
class Environment {
 public:
  Environment() = default;
  // `entries` are `NAME=value` each.
  explicit Environment(std::vector<std::string> entries) : entries_(std::move(entries)) {}

  // That of this process. Call before other threads start.
  static Environment OfThisProcess();

  // The value of `name`; empty if it is unset, which nobody here tells from empty.
  std::string Get(absl::string_view name) const;

  // All of it but `name`.
  std::vector<std::string> Without(absl::string_view name) const;

 private:
  std::vector<std::string> entries_;
};

// Unsets the variable `name` of this process, and overwrites it where the kernel shows it to the
// user's other processes (/proc/PID/environ). Copies that were taken stay. Call before other
// threads start.
void WipeFromEnvironment(const char* name);

}  // namespace hlaunch
