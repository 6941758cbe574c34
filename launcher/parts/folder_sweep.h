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
      : folders_(folders), pause_(loop) {}

  // Begins, unless it goes on already.
  void Begin();

 private:
  void Step();
  void After(Duration pause);

  const PartFolders& folders_;
  asio::steady_timer pause_;
  bool busy_ = false;
  std::set<std::string> stuck_;
};

}  // namespace hlaunch
