// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/folder_sweep.h"

#include <algorithm>
#include <vector>

#include "asio/io_context.hpp"
#include "launcher/cluster/tasks/user_file.h"

namespace hlaunch {
namespace {

constexpr int kSlice = 500;  // Entries; they take some milliseconds.
constexpr Duration kPause = std::chrono::milliseconds(5);
constexpr Duration kAgain = std::chrono::minutes(10);

}  // namespace

void FolderSweep::Begin() {
  if (busy_) return;
  busy_ = true;
  Step();
}

// Takes the folders in turn, so that none keeps the others waiting.
void FolderSweep::Step() {
  std::vector<std::string> names = folders_.AllSetAside();
  std::sort(names.begin(), names.end());
  std::rotate(names.begin(), std::upper_bound(names.begin(), names.end(), last_), names.end());
  for (const std::string& name : names) {
    if (stuck_.contains(name)) continue;
    last_ = name;
    if (folders_.RemoveSome(name, kSlice) == Removed::kNot) Keep(name);
    pause_.expires_after(kPause);
    return pause_.async_wait([this](std::error_code error) {
      if (!error) Step();
    });
  }
  busy_ = false;
}

void FolderSweep::Keep(const std::string& name) {
  if (stuck_.empty()) {
    again_.expires_after(kAgain);
    again_.async_wait([this](std::error_code error) {
      if (error) return;
      stuck_.clear();
      Begin();
    });
  }
  stuck_.insert(name);
}

}  // namespace hlaunch
