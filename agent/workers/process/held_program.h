// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/unique_fd.h"

namespace hlaunch {

// A program that can still be run after its file was replaced or removed: an upgrade must not
// change what a running job uses, nor take it away.
class HeldProgram {
 public:
  // A path without a file, or an empty one, holds nothing.
  explicit HeldProgram(std::string path);

  const std::string& path() const { return path_; }
  // For LineProcess; -1: nothing is held, and the path is run.
  int fd() const { return fd_.get(); }

  // Whether the file at the path is still the one that is held.
  bool IsUnchanged() const;

 private:
  std::string path_;
  UniqueFd fd_;
};

}  // namespace hlaunch
