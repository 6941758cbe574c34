// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/peer_jobs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/net/port/traffic_watch.h"

namespace hlaunch {
namespace {

// Leaves out the interface of a link-local address, because gRPC writes it in another way.
std::string Place(const std::string& address, uint16_t port) {
  return absl::StrCat(address.substr(0, address.find('%')), " ", port);
}

}  // namespace

bool PeerJobs::Add(int fd, const std::string& job_id) {
  const std::string place = Place(PeerHost(fd), PeerPort(fd));
  const std::optional<uint64_t> cookie = CookieOf(fd);
  if (!cookie) return false;
  MutexLock lock(&mu_);
  if (known_.size() >= look_at_) ForgetGone();
  const auto found = known_.find(place);
  const bool other = found != known_.end() && found->second.job_id != job_id &&
                     CookieOf(found->second.fd) == found->second.cookie;
  if (!other) known_.insert_or_assign(place, Known{fd, *cookie, job_id});
  return !other;
}

std::optional<std::string> PeerJobs::JobOf(const std::string& address, uint16_t port) const {
  MutexLock lock(&mu_);
  const auto found = known_.find(Place(address, port));
  if (found == known_.end()) return std::nullopt;
  return found->second.job_id;
}

void PeerJobs::ForgetGone() {
  absl::erase_if(
      known_, [](const auto& entry) { return CookieOf(entry.second.fd) != entry.second.cookie; });
  look_at_ = std::max<size_t>(look_at_, 2 * known_.size());
}

}  // namespace hlaunch
