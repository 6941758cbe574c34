// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/peer_user.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "launcher/cluster/task_start/user_entry.h"

namespace hlaunch {
namespace {

constexpr Duration kKept = std::chrono::seconds(10);
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr size_t kMostAnswers = 1000;
constexpr size_t kMostGroups = 65536;  // The kernel's own limit.

#ifndef SO_PEERGROUPS
constexpr int SO_PEERGROUPS = 59;
#endif

absl::Status CannotTell(uid_t uid, const absl::Status& why) {
  return absl::UnavailableError(absl::StrCat("hlaunchd cannot find out who the user with number ",
                                             uid, " is: ", why.message()));
}

}  // namespace

absl::StatusOr<PeerUser> UserOfPeer(int socket) {
  ucred who = {};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return absl::UnavailableError("the kernel does not say who asks");
  }
  PeerUser peer{who.uid, {}};
  peer.groups.resize(kMostGroups);
  size = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
  const bool known =
      ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size) == 0;
  peer.groups.resize(known ? size / sizeof(gid_t) : 0);
  peer.groups.push_back(who.gid);
  peer.groups.shrink_to_fit();
  return peer;
}

PeerUsers::PeerUsers(asio::io_context& loop, std::string admin_group)
    : loop_(loop), admin_group_(std::move(admin_group)) {}

PeerUsers::~PeerUsers() = default;

void PeerUsers::Find(const PeerUser& peer, Done done) {
  const auto named = [this, peer, done = std::move(done)](const Said& said) {
    if (!said.ok()) return done(CannotTell(peer.uid, said.status()));
    const absl::StatusOr<UserEntry> entry = ReadUserEntry(*said);
    if (!entry.ok() || entry->uid != peer.uid) {
      return done(absl::PermissionDeniedError(
          absl::StrCat("the user with number ", peer.uid, " has no name on this host")));
    }
    ClusterUser user{entry->name, peer.uid, peer.uid == 0, false};
    if (user.admin || admin_group_.empty()) return done(user);
    Ask({"getent", "group", "--", admin_group_}, [peer, done, user](const Said& group) {
      if (!group.ok()) return done(CannotTell(peer.uid, group.status()));
      const absl::StatusOr<gid_t> admins = ReadGroupNumber(*group);
      ClusterUser found = user;
      found.admin = admins.ok() && std::count(peer.groups.begin(), peer.groups.end(), *admins) > 0;
      done(found);
    });
  };
  Ask({"getent", "passwd", absl::StrCat(peer.uid)}, named);
}

void PeerUsers::Ask(const Words& words, Heard done) {
  const std::string key = absl::StrJoin(words, " ");
  const auto kept = answers_.find(key);
  if (kept != answers_.end() && MonotonicClock().Now() < kept->second.from + kKept) {
    return done(kept->second.said);
  }
  auto& waiting = waiting_[key];
  waiting.push_back(std::move(done));
  if (waiting.size() > 1) return;  // The same command is queued or runs already.
  queue_.push_back(words);
  RunNext();
}

void PeerUsers::RunNext() {
  while (!queue_.empty() && runs_.size() < kMostRuns) {
    const Words words = std::move(queue_.front());
    queue_.pop_front();
    const std::string key = absl::StrJoin(words, " ");
    runs_[key] = std::make_unique<ToolRun>(loop_, words, kPatience, [this, key](ToolOutput output) {
      Answered(key, std::move(output));
    });
  }
}

void PeerUsers::Answered(const std::string& key, ToolOutput output) {
  if (answers_.size() >= kMostAnswers) answers_.clear();
  const absl::Status asked = CheckGetent(output.exit_code);
  const Said said = absl::IsUnavailable(asked) ? Said(asked) : Said(asked.ok() ? output.text : "");
  if (said.ok()) answers_.insert_or_assign(key, Answer{said, MonotonicClock().Now()});
  const auto waiting = waiting_.extract(key);
  // This function was called by that run, so the run is destroyed later.
  asio::post(loop_, [run = std::shared_ptr<ToolRun>(std::move(runs_[key]))] {});
  runs_.erase(key);
  RunNext();
  for (const Heard& done : waiting.mapped()) done(said);
}

}  // namespace hlaunch
