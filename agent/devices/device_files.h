// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The files in which a machine describes itself, below a root that can be a described machine.
//
// Nothing fails: what cannot be read is empty. Reads only, regular files only - so that no device
// is ever opened, which would acquire it - and bounded, whatever lies there. In a root other than
// "/" no link leads out of it, but for Linux before 5.6 (openat2). Thread-safe.
class DeviceFiles {
 public:
  // "" and "/": this machine.
  explicit DeviceFiles(std::string root = "");

  // The file's first 64 KiB without the white space at both ends.
  std::string Read(absl::string_view path) const;

  // What the file says as a number, decimal or 0x…; else `otherwise`.
  int ReadInt(absl::string_view path, int otherwise) const;

  // The names in a folder in natural order, so accel2 before accel10; at most 65,536.
  std::vector<std::string> List(absl::string_view path) const;

  // Where a link leads, as it is written; empty: it is none.
  std::string Link(absl::string_view path) const;
  // The last name of that.
  std::string LinkName(absl::string_view path) const;

  // What all links of a folder say, as {name, target}; at most 65,536.
  std::vector<std::pair<std::string, std::string>> Links(absl::string_view path) const;

  bool Exists(absl::string_view path) const;
  // Whether this process could open it for reading and writing, by owner and mode.
  bool MayOpen(absl::string_view path) const;

  bool is_this_machine() const { return root_.empty(); }

 private:
  int Open(absl::string_view path, int flags) const;

  std::string root_;  // Empty: "/".
};

// The number behind `prefix` if `name` is nothing but those; else -1. All digits count.
int NumberAfter(absl::string_view name, absl::string_view prefix);

}  // namespace hlaunch
