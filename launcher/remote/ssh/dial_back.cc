// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/dial_back.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/text/endpoint.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr Duration kApart = std::chrono::milliseconds(250);

struct Attempt {
  std::string place;
  UniqueFd socket;
  int error = EINPROGRESS;
};

// Begins a connection; `error` is EINPROGRESS until its result is known.
Attempt Begin(const std::string& place) {
  Attempt attempt{place, UniqueFd(), EADDRNOTAVAIL};
  const auto endpoint = ParseEndpoint(place, 0);
  if (!endpoint.ok()) return attempt;
  const std::string host = endpoint->host.substr(0, endpoint->host.find('%'));
  sockaddr_in v4 = {};
  sockaddr_in6 v6 = {};
  const sockaddr* address = nullptr;
  socklen_t size = 0;
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint->port);
    address = reinterpret_cast<const sockaddr*>(&v4);
    size = sizeof(v4);
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint->port);
    if (host.size() < endpoint->host.size()) {
      v6.sin6_scope_id = ::if_nametoindex(endpoint->host.substr(host.size() + 1).c_str());
    }
    address = reinterpret_cast<const sockaddr*>(&v6);
    size = sizeof(v6);
  } else {
    return attempt;
  }
  attempt.socket = UniqueFd(
      ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!attempt.socket.valid()) {
    attempt.error = errno;
    return attempt;
  }
  attempt.error = ::connect(attempt.socket.get(), address, size) == 0 ? 0 : errno;
  return attempt;
}

// Waits until `until` for any of `attempts`, and takes the results that there are.
void Await(std::vector<Attempt>& attempts, Instant until) {
  std::vector<pollfd> polls;
  std::vector<Attempt*> open;
  for (Attempt& attempt : attempts) {
    if (attempt.error != EINPROGRESS) continue;
    polls.push_back({attempt.socket.get(), POLLOUT, 0});
    open.push_back(&attempt);
  }
  const Duration left = std::max(until - MonotonicClock().Now(), Duration::zero());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  if (::poll(polls.data(), polls.size(), static_cast<int>(ms)) <= 0) return;
  for (size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents == 0) continue;
    socklen_t size = sizeof(int);
    ::getsockopt(open[i]->socket.get(), SOL_SOCKET, SO_ERROR, &open[i]->error, &size);
  }
}

std::string Reason(const Attempt& attempt) {
  return absl::StrCat(attempt.place, " (",
                      attempt.error == EINPROGRESS ? "no answer" : std::strerror(attempt.error),
                      ")");
}

}  // namespace

Dialled DialBack(const std::vector<std::string>& places, Duration patience) {
  std::vector<Attempt> attempts;
  const Instant give_up = MonotonicClock().Now() + patience;
  Instant next = MonotonicClock().Now();
  while (true) {
    const Instant now = MonotonicClock().Now();
    const bool waiting = std::any_of(attempts.begin(), attempts.end(), [](const Attempt& attempt) {
      return attempt.error == EINPROGRESS;
    });
    if (attempts.size() < places.size() && (now >= next || !waiting)) {
      attempts.push_back(Begin(places[attempts.size()]));
      next = now + kApart;
    } else if (now >= give_up || !waiting) {
      break;
    }
    for (const Attempt& attempt : attempts) {
      if (attempt.error == 0) return {attempt.place, ""};
    }
    Await(attempts, attempts.size() < places.size() ? std::min(next, give_up) : give_up);
    for (const Attempt& attempt : attempts) {
      if (attempt.error == 0) return {attempt.place, ""};
    }
  }
  std::vector<std::string> reasons;
  for (const Attempt& attempt : attempts) reasons.push_back(Reason(attempt));
  return {"", absl::StrJoin(reasons, ", ")};
}

std::vector<std::string> OrderCandidates(const std::vector<std::string>& candidates,
                                         const std::string& ssh_connection) {
  std::vector<std::string> ordered = candidates;
  const std::string client = ssh_connection.substr(0, ssh_connection.find(' '));
  if (candidates.empty() || client.empty()) return ordered;
  const auto endpoint = ParseEndpoint(candidates.front(), 0);
  if (!endpoint.ok()) return ordered;
  const std::string best = HostPort(client, endpoint->port);
  ordered.erase(std::remove(ordered.begin(), ordered.end(), best), ordered.end());
  ordered.insert(ordered.begin(), best);
  return ordered;
}

}  // namespace hlaunch
