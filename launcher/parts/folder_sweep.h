// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <set>
#include <string>

#include "asio/steady_timer.hpp"
#include "launcher/parts/part_folder.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Removes what PartFolders has set aside, in slices that do not hold up the loop. What cannot be
// removed, as something is mounted in it, is tried again later.
//
// Belongs to the loop's thread; the loop and the folders outlive it.
class FolderSweep {
 public:
  FolderSweep(asio::io_context& loop, const PartFolders& folders)
      : folders_(folders), pause_(loop), again_(loop) {}

  // Begins, unless it goes on already.
  void Begin();

 private:
  void Step();
  void Keep(const std::string& name);

  const PartFolders& folders_;
  asio::steady_timer pause_;  // Between two slices.
  asio::steady_timer again_;  // Until those that could not be removed are tried again.
  bool busy_ = false;
  std::string last_;  // The next one is the one behind it.
  std::set<std::string> stuck_;
};

}  // namespace hlaunch
