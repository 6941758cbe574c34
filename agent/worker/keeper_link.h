// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The agent's end of the bond with its keeper. A movable value of the agent's process.
class KeeperLink {
 public:
  explicit KeeperLink(UniqueFd socket) : socket_(std::move(socket)) {}

  // The link of an agent that was exec'ed with ForExec() in its environment. Removes it there.
  //
  // Errors:
  //   NotFound - HLAUNCH_KEEPER_FD is not set: this process has no keeper.
  //   InvalidArgument - it does not name a keeper's socket.
  static absl::StatusOr<KeeperLink> FromEnv();

  // `HLAUNCH_KEEPER_FD=n` for the environment of a program that this process is about to exec
  // as the agent. The descriptor stays open over that exec.
  std::string ForExec();

  // Readable once the keeper is dead, and never before. Do not read from it.
  int fd() const { return socket_.get(); }

  // Has the keeper run `argv` if the agent is killed, after all else has ended, for at most
  // 5 s. `env` is added to the keeper's own environment: secrets belong there, argv
  // is public. The last call counts.
  //
  // Errors:
  //   InvalidArgument - more than kMaxObituaryBytes.
  //   Unavailable - the keeper is dead.
  absl::Status RegisterObituary(const std::vector<std::string>& argv,
                                const std::vector<std::string>& env) const;

  // Has the keeper remove `directory`, of this process alone, if this process is killed.
  void LeaveBehind(const std::string& directory) const;

  // Tells the keeper that this process goes on: its workers may live until `until` without another
  // such word. Afterwards the keeper ends them, and this process. Instant::max(): without an end.
  // Never blocks; what a stopped keeper does not read is lost.
  void ShowLife(Instant until) const;

 private:
  UniqueFd socket_;
};

}  // namespace hlaunch
