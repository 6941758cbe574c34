// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The names of jobs' sockets. They are abstract: they have no file, and end with their process.

namespace hlaunch {

// A value.
struct JobSocketName {
  std::string text;  // "hlaunch-job/1000/4242-9f3c…", without the zero byte before it.
  // As the name says; anybody may choose a name, so the peer must be checked.
  uid_t uid = 0;
  pid_t pid = 0;

  bool operator==(const JobSocketName&) const = default;
};

// A name that no other socket has. Requires: `random` is.
JobSocketName NewJobSocketName(uid_t uid, pid_t pid, uint64_t random);

// Returns the jobs' sockets that somebody listens at, from the text of /proc/net/unix. Names each
// once. `uid`: those of this user alone; unset: of all users. Pure.
std::vector<JobSocketName> JobSocketsIn(absl::string_view proc_net_unix, std::optional<uid_t> uid);

// The address of a socket with this name. A value.
struct AbstractAddress {
  sockaddr_un name = {};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};
AbstractAddress AddressOf(const JobSocketName& name);

// The process at the other end of a connected socket, as the kernel saw it; unset if it does not
// tell. For a connection that this process made, it is the process that listens.
std::optional<ucred> CredentialsOfPeer(int socket);

}  // namespace hlaunch
