// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/node_meeting.h"

#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/mpi/serve/awaited_notice.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/contract/rank_list.h"
#include "rendezvous/store/c10d/c10d_client.h"

namespace hlaunch {
namespace {

constexpr Duration kReach = std::chrono::seconds(30);  // For the store to answer.
constexpr Duration kLook = std::chrono::seconds(2);    // Between two calls of may_wait.
constexpr size_t kPiece = 4 << 20;  // Per part: the store takes values of up to 8 MiB.
constexpr size_t kMostPieces = 1024;

std::string KeyOf(const std::string& name, int node_rank) {
  return absl::StrCat("hlaunch/", name, "/node/", node_rank);
}
std::string WholeKey(const std::string& name) { return absl::StrCat("hlaunch/", name, "/all"); }
std::string PieceKey(const std::string& name, size_t piece) {
  return absl::StrCat("hlaunch/", name, "/all/", piece);
}

}  // namespace

NodeMeeting::NodeMeeting(NodeMeetingPlace place, Events events)
    : place_(std::move(place)), events_(std::move(events)) {}
NodeMeeting::~NodeMeeting() = default;

absl::StatusOr<C10dClient*> NodeMeeting::Store() {
  MutexLock lock(&mu_);
  if (store_ == nullptr) {
    HLAUNCH_ASSIGN_OR_RETURN(store_, C10dClient::Connect(place_.store_host, place_.store_port,
                                                         MonotonicClock().Now() + kReach));
  }
  return store_.get();
}

absl::StatusOr<std::string> NodeMeeting::Meet(const std::string& name,
                                              const std::vector<int>& nodes, absl::string_view own,
                                              absl::string_view where) {
  HLAUNCH_RETURN_IF_ERROR(Say(KeyOf(name, place_.node_rank), own));
  if (place_.node_rank != nodes.front()) return ReadWhole(name);
  std::vector<std::string> keys;
  for (const int node : nodes) keys.push_back(KeyOf(name, node));
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> said, AwaitAll(keys, nodes, where));
  std::string whole = absl::StrJoin(said, "");
  HLAUNCH_RETURN_IF_ERROR(SayWhole(name, whole));
  HLAUNCH_ASSIGN_OR_RETURN(C10dClient * store, Store());
  for (const std::string& key : keys) store->Delete(key).status().IgnoreError();
  return whole;
}

void NodeMeeting::Forget(const std::string& name) {
  const absl::StatusOr<C10dClient*> store = Store();
  if (!store.ok()) return;
  (*store)->Delete(WholeKey(name)).status().IgnoreError();
  for (size_t piece = 0; piece < kMostPieces; ++piece) {
    const absl::StatusOr<bool> was_there = (*store)->Delete(PieceKey(name, piece));
    if (!was_there.ok() || !*was_there) return;
  }
}

absl::StatusOr<std::string> NodeMeeting::Await(const std::string& key) {
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> values, AwaitAll({key}, {}, ""));
  return std::move(values[0]);
}

// Writing the same value again does no harm.
absl::Status NodeMeeting::Say(const std::string& key, absl::string_view text) {
  HLAUNCH_ASSIGN_OR_RETURN(C10dClient * store, Store());
  const Instant until = MonotonicClock().Now() + kReach;
  for (;;) {
    absl::Status said = store->Set(key, text);
    const bool again = absl::IsUnavailable(said) && MonotonicClock().Now() < until;
    if (!again || !events_.may_wait().ok()) return said;
  }
}

absl::StatusOr<std::vector<std::string>> NodeMeeting::AwaitAll(const std::vector<std::string>& keys,
                                                               const std::vector<int>& nodes,
                                                               absl::string_view where) {
  HLAUNCH_ASSIGN_OR_RETURN(C10dClient * store, Store());
  const Instant began = MonotonicClock().Now();
  Instant reached = began;
  Duration notice = AwaitedNotice::kFirstNotice;  // Then after twice as long each time.
  for (;;) {
    auto values = store->MultiGet(keys, MonotonicClock().Now() + kLook);
    const bool answers = absl::IsDeadlineExceeded(values.status());
    if (answers) reached = MonotonicClock().Now();
    const bool may_come_back =
        absl::IsUnavailable(values.status()) && MonotonicClock().Now() - reached < kReach;
    if (!answers && !may_come_back) return values;
    HLAUNCH_RETURN_IF_ERROR(events_.may_wait());
    if (!answers || nodes.empty() || MonotonicClock().Now() - began < notice) continue;
    Notice(keys, nodes, where, std::chrono::duration_cast<std::chrono::seconds>(notice).count());
    notice *= 2;
  }
}

void NodeMeeting::Notice(const std::vector<std::string>& keys, const std::vector<int>& nodes,
                         absl::string_view where, int64_t seconds) {
  const absl::StatusOr<C10dClient*> store = Store();
  std::vector<int> missing;
  for (size_t i = 0; store.ok() && i < keys.size(); ++i) {
    const absl::StatusOr<bool> there = (*store)->Check({keys[i]});
    if (there.ok() && !*there) missing.push_back(nodes[i]);
  }
  if (missing.empty()) return;
  events_.on_waiting(absl::StrCat("MPI has waited ", seconds, " s for node rank",
                                  missing.size() == 1 ? " " : "s ", RankList(missing), " in ",
                                  where));
}

absl::Status NodeMeeting::SayWhole(const std::string& name, absl::string_view whole) {
  size_t pieces = 0;
  for (size_t at = 0; at < whole.size(); at += kPiece) {
    HLAUNCH_RETURN_IF_ERROR(Say(PieceKey(name, pieces++), whole.substr(at, kPiece)));
  }
  return Say(WholeKey(name), absl::StrCat(pieces));
}

absl::StatusOr<std::string> NodeMeeting::ReadWhole(const std::string& name) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string head, Await(WholeKey(name)));
  size_t pieces = 0;
  if (!absl::SimpleAtoi(head, &pieces) || pieces > kMostPieces) {
    return absl::InvalidArgumentError("what the first node says to MPI programs is damaged");
  }
  HLAUNCH_ASSIGN_OR_RETURN(C10dClient * store, Store());
  std::string whole;
  for (size_t piece = 0; piece < pieces; ++piece) {
    HLAUNCH_ASSIGN_OR_RETURN(const std::string part,
                             store->Get(PieceKey(name, piece), MonotonicClock().Now() + kReach));
    whole += part;
  }
  return whole;
}

}  // namespace hlaunch
