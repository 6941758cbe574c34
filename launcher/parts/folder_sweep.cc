// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/parts/folder_sweep.h"

#include "asio/io_context.hpp"
#include "launcher/parts/user_file.h"

namespace hlaunch {
namespace {

constexpr int kSlice = 500;  // Entries, some milliseconds.
constexpr Duration kPause = std::chrono::milliseconds(5);
constexpr Duration kAgain = std::chrono::minutes(10);

}  // namespace

void FolderSweep::Begin() {
  if (busy_) return;
  busy_ = true;
  Step();
}

void FolderSweep::Step() {
  for (const std::string& name : folders_.AllSetAside()) {
    if (stuck_.count(name) > 0) continue;
    if (folders_.RemoveSome(name, kSlice) == Removed::kNot) stuck_.insert(name);
    return After(kPause);
  }
  busy_ = false;
  if (!stuck_.empty()) After(kAgain);
}

void FolderSweep::After(Duration pause) {
  pause_.expires_after(pause);
  pause_.async_wait([this](std::error_code error) {
    if (error) return;
    if (!busy_) stuck_.clear();
    busy_ = true;
    Step();
  });
}

}  // namespace hlaunch
