// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/held_program.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/match.h"

namespace hlaunch {
namespace {

// This process's own program is there for as long as this process.
int Hold(const std::string& path) {
  const bool own = absl::StartsWith(path, "/proc/self/");
  return path.empty() || own ? -1 : ::open(path.c_str(), O_PATH | O_CLOEXEC);
}

}  // namespace

HeldProgram::HeldProgram(std::string path) : path_(std::move(path)), fd_(Hold(path_)) {}

bool HeldProgram::IsUnchanged() const {
  struct stat held = {}, there = {};
  return fd_.valid() && ::fstat(fd_.get(), &held) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

}  // namespace hlaunch
