// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The files in which a machine describes itself. The root may be that of a described machine.
//
// No call fails: what cannot be read is empty. Everything is read-only and bounded, whatever the
// files hold. Only regular files are opened, because opening a device would acquire it. In a root
// other than "/" no link leads out of the root, except on Linux before 5.6 (without openat2).
// Thread-safe.
class DeviceFiles {
 public:
  // "" and "/" stand for this machine.
  explicit DeviceFiles(std::string root = "");

  // The file's first 64 KiB, without white space at both ends.
  std::string Read(absl::string_view path) const;

  // The number in the file, decimal or 0x…; `otherwise` if there is none.
  int ReadInt(absl::string_view path, int otherwise) const;

  // The names in a folder that begin with `start`, in natural order (accel2 before accel10); at
  // most 65,536.
  std::vector<std::string> List(absl::string_view path, absl::string_view start = "") const;

  // The target of a link, as it is written; empty if `path` is not a link.
  std::string Link(absl::string_view path) const;
  // The last component of that target.
  std::string LinkName(absl::string_view path) const;

  // All links of a folder as {name, target}; at most 65,536.
  std::vector<std::pair<std::string, std::string>> Links(absl::string_view path) const;

  bool Exists(absl::string_view path) const;
  // True if this process could open the file for reading and writing, by owner and mode.
  bool MayOpen(absl::string_view path) const;

  bool is_this_machine() const { return root_.empty(); }

 private:
  int Open(absl::string_view path, int flags) const;
  // Returns whether only regular files can be there.
  bool IsOfKernel(absl::string_view path) const;

  std::string root_;  // Empty for "/".
};

// The number after `prefix`, if `name` is exactly the prefix and a decimal number; else -1.
int NumberAfter(absl::string_view name, absl::string_view prefix);

}  // namespace hlaunch
