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
#include "launcher/cluster/task_start/part_limits.h"
#include "launcher/cluster/task_start/user_entry.h"
#include "launcher/cluster/tasks/folder_sweep.h"
#include "launcher/cluster/tasks/folder_watch.h"
#include "launcher/cluster/tasks/part_folder.h"
#include "proto/cluster/cluster_messages.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The parts of jobs that run on this host, and those that have ended and are kept for a while. It
// starts parts, watches them, and finds them again after a restart of the node daemon, which
// disturbs none of them.
//
// Belongs to the loop's thread; the loop outlives it. Destruction leaves all parts alone.
class Parts {
 public:
  struct Settings {
    std::string host;     // This host's name in messages.
    std::string folder;   // The folder of PartFolders.
    std::string program;  // The path of `hlaunch`.
    UserRule rule;
    PartLimits limits;
    bool private_tmp = false;  // Each part has a /tmp of its own.
    size_t most = 256;         // How many parts run at the same time.
  };

  // Calls `changed` with the new state of a part, from the loop or within a call to this object.
  Parts(asio::io_context& loop, Settings settings, std::function<void(const PartTold&)> changed);
  ~Parts();

  // Finds the parts that are on this host.
  //
  // Errors:
  //   FailedPrecondition - parts cannot be kept here; the message says why.
  absl::Status Open();

  // Begins to start a part. `changed` tells how that goes on. If the part exists already, only its
  // state is told again.
  //
  // Errors:
  //   ResourceExhausted - no more parts fit here, or the part cannot be made; the message names the
  //       host.
  absl::Status Start(const PartOrder& order);
  // Sends a signal to a part. Does nothing if the part has ended. Errors:
  //   NotFound - there is no such part.
  //   InvalidArgument - the signal is not SIGTERM, SIGINT or SIGKILL.
  absl::Status Signal(const SignalOrder& order);
  // Tells a part that another node shall take its place. An empty `reason` takes that back. Does
  // nothing if the part has ended. Errors:
  //   NotFound - there is no such part.
  //   ResourceExhausted - the part's agent cannot be told.
  absl::Status Leave(uint64_t job, const std::string& reason);
  // The head knows how the part ended. Errors:
  //   FailedPrecondition - the part still runs.
  //   ResourceExhausted - the record cannot be written.
  absl::Status Forget(const ForgetOrder& order);

  // Sets this host's name, from its certificate.
  void SetHost(const std::string& host) { settings_.host = host; }
  // Sets the address by which other hosts reach this one.
  void SetReachableAt(const std::string& address);

  std::vector<PartTold> All() const;
  // Null if there is no such part.
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
