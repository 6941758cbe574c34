// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/workers/process/tool_run.h"
#include "proto/base/clock.h"
#include "proto/cluster/envelope.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The user of the process at the other end of a local socket, as the kernel saw it when that
// process connected. A value.
struct PeerUser {
  uid_t uid = 0;
  std::vector<gid_t> groups;  // All groups of the process.
};

// Errors:
//   Unavailable - the kernel does not tell the user.
absl::StatusOr<PeerUser> UserOfPeer(int socket);

// Finds out which users peers are: their names by getent, and whether they are administrators.
//
// Belongs to the loop's thread, which outlives it.
class PeerUsers {
 public:
  using Done = std::function<void(absl::StatusOr<ClusterUser>)>;

  // Members of `admin_group` are administrators, as root is. If it is empty, only root is one.
  PeerUsers(asio::io_context& loop, std::string admin_group);
  ~PeerUsers();

  // Calls `done` once, at once or later. Results are kept for some seconds.
  //
  // Errors:
  //   PermissionDenied - the user has no name here.
  //   Unavailable - getent cannot tell the user's name, or the administrators' group.
  void Find(const PeerUser& peer, Done done);

 private:
  // What getent printed. Unavailable: getent did not answer.
  using Said = absl::StatusOr<std::string>;
  using Heard = std::function<void(const Said&)>;
  // A value.
  struct Answer {
    Said said;
    Instant from;
  };
  using Words = std::vector<std::string>;

  static constexpr size_t kMostRuns = 16;  // How many getent run at the same time.

  void Ask(const Words& words, Heard done);
  void RunNext();
  void Answered(const std::string& key, ToolOutput output);

  asio::io_context& loop_;
  const std::string admin_group_;
  std::map<std::string, Answer> answers_;  // By the words of the command.
  std::map<std::string, std::vector<Heard>> waiting_;
  std::map<std::string, std::unique_ptr<ToolRun>> runs_;
  std::deque<Words> queue_;  // Commands that do not run yet.
};

}  // namespace hlaunch
