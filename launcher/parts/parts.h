// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "asio/steady_timer.hpp"
#include "launcher/part_start/part_limits.h"
#include "launcher/part_start/user_entry.h"
#include "launcher/parts/folder_sweep.h"
#include "launcher/parts/folder_watch.h"
#include "launcher/parts/part_folder.h"
#include "proto/cluster/cluster_messages.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// What runs on this host, and what has ended and is kept a while: starts parts, watches them, and
// finds them again after a restart of the node daemon, which disturbs none of them.
//
// Belongs to the loop's thread; the loop outlives it. Destruction leaves all parts alone.
class Parts {
 public:
  struct Settings {
    std::string host;     // This one, for people.
    std::string folder;   // Where parts are kept.
    std::string program;  // `hlaunch`, by its path.
    UserRule rule;
    PartLimits limits;
    bool private_tmp = false;  // Each part has a /tmp of its own.
    size_t most = 256;         // Parts that run at the same time.
  };

  // `changed` is called from the loop with whatever there is to tell of a part.
  Parts(asio::io_context& loop, Settings settings, std::function<void(const PartTold&)> changed);
  ~Parts();

  // Finds the parts that are here.
  //
  // Errors:
  //   FailedPrecondition - they cannot be kept here; the message says why.
  absl::Status Open();

  // Begins to start a part; how that goes on is told. One that is here is told again.
  //
  // Errors:
  //   ResourceExhausted - no more parts fit here, or it cannot be made; names the host.
  absl::Status Start(const PartOrder& order);
  // Of a part that has ended nothing happens. Errors:
  //   NotFound - there is no such part.
  //   InvalidArgument - the signal is none that is sent here.
  absl::Status Signal(const SignalOrder& order);
  // Another node is to take the place of this one; without a reason: not any more. Of a part that
  // has ended nothing happens. Errors:
  //   NotFound - there is no such part.
  //   ResourceExhausted - its agent cannot be told.
  absl::Status Leave(uint64_t job, const std::string& reason);
  // The head knows how it ended. Errors:
  //   FailedPrecondition - it runs.
  absl::Status Forget(const ForgetOrder& order);

  // What this host is called, by its certificate.
  void SetHost(const std::string& host) { settings_.host = host; }
  // Where others reach this host, as far as that is known.
  void SetReachableAt(const std::string& address);

  std::vector<PartTold> All() const;
  // Null: there is none.
  const PartRecord* Find(uint64_t job) const;
  bool Lives(uint64_t job) const;
  size_t living() const;
  const std::string& host() const { return settings_.host; }
  const PartFolders& folders() const { return folders_; }

 private:
  struct Part;
  absl::Status Begin(Part& part, const PartOrder& order);
  void FindAgain(PartRecord record);
  void Watch(Part& part);
  void ReadComplaint(Part& part);
  void Ended(Part& part);
  void RemoveGroup(Part& part);
  void Look(Part& part);
  void LookSoon(Part& part);
  PartTold ToldOf(const Part& part) const;
  void LookAtAll();
  void RemoveOld();

  asio::io_context& loop_;
  Settings settings_;
  const std::function<void(const PartTold&)> changed_;
  const PartFolders folders_;
  const std::string boot_id_;
  std::string reachable_at_;
  FolderWatch watch_;
  FolderSweep sweep_;
  asio::steady_timer look_;
  std::map<uint64_t, std::unique_ptr<Part>> parts_;  // By job.
};

}  // namespace hlaunch
