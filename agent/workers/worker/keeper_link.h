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

  // The link of an agent that was exec'ed with ForExec() in its environment. Removes the variable
  // from the environment.
  //
  // Errors:
  //   NotFound - HLAUNCH_KEEPER_FD is not set: this process has no keeper.
  //   InvalidArgument - HLAUNCH_KEEPER_FD does not name a keeper's socket.
  static absl::StatusOr<KeeperLink> FromEnv();

  // Returns `HLAUNCH_KEEPER_FD=n` for the environment of a program that this process is about to
  // exec as the agent. The descriptor stays open across that exec.
  std::string ForExec();

  // Readable once the keeper is dead, and never before. Do not read from it.
  int fd() const { return socket_.get(); }

  // Says that this process has begun: from now on it reads its signals and watches fd(). Until then
  // it dies with its keeper, and the keeper ends it if it takes too long (kBeginTime). Call it in
  // the thread that called RunUnderKeeper.
  void SayBegun() const;

  // Makes the keeper run `argv` if the agent is killed. It runs after everything else has ended,
  // for at most 5 s. `env` is added to the keeper's own environment: secrets belong there, since
  // argv is public. A later call replaces an earlier one.
  //
  // Errors:
  //   InvalidArgument - `argv` is empty, or the message is larger than kMaxDeathReportBytes.
  //   Unavailable - the keeper is dead, or stopped and its queue is full.
  absl::Status RegisterDeathReport(const std::vector<std::string>& argv,
                                   const std::vector<std::string>& env) const;

  // Makes the keeper remove `directory`, which this process alone uses, if this process is killed.
  // May be called for several directories.
  void LeaveBehind(const std::string& directory) const;

  // Tells the keeper that this process goes on: its workers may live until `until` without another
  // such message. After that the keeper ends the workers and this process. Instant::max(): without
  // an end. Never blocks; a message that a stopped keeper does not read is lost.
  void ShowLife(Instant until) const;

 private:
  UniqueFd socket_;
};

}  // namespace hlaunch
