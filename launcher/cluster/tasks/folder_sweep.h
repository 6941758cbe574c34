// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <set>
#include <string>

#include "asio/steady_timer.hpp"
#include "launcher/cluster/tasks/part_folder.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Removes folders that PartFolders has set aside, in slices that do not block the loop for long. A
// folder that cannot be removed, for example since something is mounted in it, is tried again
// later.
//
// Belongs to the loop's thread; the loop and the folders outlive it.
class FolderSweep {
 public:
  FolderSweep(asio::io_context& loop, const PartFolders& folders)
      : folders_(folders), pause_(loop), again_(loop) {}

  // Begins, unless it is running already.
  void Begin();

 private:
  void Step();
  void Keep(const std::string& name);

  const PartFolders& folders_;
  asio::steady_timer pause_;  // Between two slices.
  asio::steady_timer again_;  // Until the stuck folders are tried again.
  bool busy_ = false;
  std::string last_;  // The folder of the last slice. The next slice takes the one after it.
  std::set<std::string> stuck_;
};

}  // namespace hlaunch
