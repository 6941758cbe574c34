// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/peer_ways.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/accept.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/round/decide/partition.h"

namespace hlaunch {
namespace {

constexpr char kName[] = "ways to other nodes";
constexpr char kUnreached[] = "unreached";

// True for errors that mean that no path leads to the host. Other errors, such as a refusal, are
// the other host's answer or this process's own problem.
bool IsNoWay(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN;
}

int ErrorOf(int fd) {
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

// A connection attempt that has not been answered yet.
struct Knock {
  int rank = 0;
  UniqueFd fd;
};

// Removes the attempts that are answered within `limit`. Returns the ranks whose error says that
// there is no path.
std::vector<int> TakeAnswers(std::vector<Knock>& knocks, Duration limit) {
  std::vector<pollfd> polled;
  for (const Knock& knock : knocks) polled.push_back({knock.fd.get(), POLLOUT, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit);
  ::poll(polled.data(), polled.size(), static_cast<int>(left.count()));
  std::vector<int> none;
  std::vector<Knock> open;
  for (size_t i = 0; i < knocks.size(); ++i) {
    if (polled[i].revents == 0) {
      open.push_back(std::move(knocks[i]));
    } else if (IsNoWay(ErrorOf(knocks[i].fd.get()))) {
      none.push_back(knocks[i].rank);
    }
  }
  knocks = std::move(open);
  return none;
}

}  // namespace

PeerWays::PeerWays(const JointPlan& plan, const std::string& address) : plan_(plan) {
  absl::StatusOr<ListeningSocket> listener = Listen(address, 0);
  if (listener.ok()) listener_ = *std::move(listener);  // Otherwise no node tests this one.
}

std::string PeerWays::KeyOf(int rank) const {
  return absl::StrCat("hlaunch/watch/", plan_.round, "/way/", rank);
}

absl::Status PeerWays::Announce(Store& store) {
  if (announced_) return absl::OkStatus();
  const std::string door = absl::StrCat(listener_.port, " ", listener_.address);
  HLAUNCH_RETURN_IF_ERROR(store.Set(KeyOf(plan_.node_rank), door));
  announced_ = true;
  return absl::OkStatus();
}

absl::Status PeerWays::Learn(Store& store, Instant deadline) {
  if (!doors_.empty()) return absl::OkStatus();
  const std::vector<int> ranks = WaysToLookAt(plan_.node_rank, plan_.size);
  std::vector<std::string> keys;
  for (const int rank : ranks) keys.push_back(KeyOf(rank));
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> doors, store.MultiGet(keys, deadline));
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::pair<std::string, std::string> words =
        absl::StrSplit(doors[i], absl::MaxSplits(' ', 1));
    int port = 0;
    if (!absl::SimpleAtoi(words.first, &port) || port < 1 || port > 65535) continue;
    doors_[ranks[i]] = {words.second, static_cast<uint16_t>(port)};
  }
  return absl::OkStatus();
}

// Accepts and closes the connections of nodes that tested this one; they are gone already.
void PeerWays::LetIn() {
  if (listener_.fd.valid()) {
    AcceptConnections(listener_.fd.get(), kMostUnaccepted, [](const UniqueFd&) {});
  }
}

std::vector<int> PeerWays::Look(Duration limit) {
  LetIn();
  const Instant until = MonotonicClock().Now() + limit;
  std::vector<int> unreached;
  std::vector<Knock> knocks;
  for (const auto& [rank, door] : doors_) {
    int error = 0;
    UniqueFd fd = BeginToConnect(door.address, door.port, &error);
    if (fd.valid()) {
      knocks.push_back({rank, std::move(fd)});
    } else if (IsNoWay(error)) {
      unreached.push_back(rank);
    }
  }
  // Looks once more even when late: answers may have come while this process was paused.
  for (bool late = false; !knocks.empty() && !late;) {
    const Instant now = MonotonicClock().Now();
    late = now >= until;
    for (const int rank : TakeAnswers(knocks, std::max(until - now, Duration::zero()))) {
      unreached.push_back(rank);
    }
  }
  for (const Knock& knock : knocks) unreached.push_back(knock.rank);
  std::sort(unreached.begin(), unreached.end());
  LetIn();
  return unreached;
}

CheckResult ToResult(const std::vector<int>& unreached) {
  CheckResult result{kName, {}, "", CheckState::kOk, "all answer", ""};
  result.detail = nlohmann::json{{kUnreached, unreached}}.dump();
  if (unreached.empty()) return result;
  result.state = CheckState::kWarn;
  result.reason = absl::StrCat("no answer from node ranks ", absl::StrJoin(unreached, ", "));
  result.advice = "see the network between the nodes";
  return result;
}

std::optional<std::vector<int>> UnreachedOf(const CheckResult& result) {
  if (result.name != kName) return std::nullopt;
  const auto detail = nlohmann::json::parse(result.detail, nullptr, /*allow_exceptions=*/false);
  if (!detail.is_object() || !detail.contains(kUnreached)) return std::nullopt;
  std::vector<int> unreached;
  for (const auto& rank : detail[kUnreached]) {
    if (rank.is_number_integer()) unreached.push_back(rank.get<int>());
  }
  unreached.resize(std::min(unreached.size(), kMaxUnreached));
  return unreached;
}

}  // namespace hlaunch
