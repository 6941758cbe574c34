// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/node_identity.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {
namespace {

constexpr int kMaxSlots = 1024;

// Returns the addresses of this host to announce; none if the kernel does not list them.
std::vector<std::string> AnnouncedAddresses() {
  std::vector<std::string> local;
  for (LocalAddress& each : ListLocalAddresses().value_or(std::vector<LocalAddress>())) {
    local.push_back(std::move(each.address));
  }
  return SelectAnnounced(local);
}

}  // namespace

HostSlot::HostSlot(const std::string& job_id) {
  for (number_ = 0; number_ < kMaxSlots; ++number_) {
    if (Claim(absl::StrCat("hlaunch/", job_id.substr(0, 64), "/", number_))) return;
  }
}

bool HostSlot::Claim(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  fd_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length) == 0;
}

NodeInfo MakeNodeInfo(const JobSpec& spec, const NodeLink& link, const HostSlot& slot,
                      const std::string& address) {
  NodeInfo info;
  info.job_id = spec.job_id;
  info.node_id =
      spec.node.rank ? absl::StrCat("rank-", *spec.node.rank) : HostNodeId(slot.number());
  info.incarnation = NewIncarnation();
  info.host = HostName();
  info.pid = ::getpid();
  info.started_ms = BootMillis();
  info.nproc = std::max(1, spec.worker.nproc);  // A node that cannot start may not know it.
  info.node_rank = spec.node.rank;
  // If the master store shares the port of the rendezvous, its node must have node rank 0.
  if (!info.node_rank && link.shared_store_port() != 0) info.node_rank = 0;
  info.policy = spec.policy;
  if (spec.mode == JobMode::kSingleNode) {
    info.address = "127.0.0.1";
  } else {
    info.address = address;
    info.other_addresses = AnnouncedAddresses();
  }
  return info;
}

}  // namespace hlaunch
