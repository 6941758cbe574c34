// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/between_nodes.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"
#include "proto/base/thread.h"
#include "proto/contract/rank_list.h"
#include "rendezvous/store/c10d/c10d_client.h"

namespace hlaunch {
namespace {

constexpr char kInFence[] = "MPI_Init or MPI_Finalize: not all of its ranks have come";
constexpr char kInGroup[] = "the making of a group: not all of its ranks have come";

std::string AskedKey(int node) { return absl::StrCat("hlaunch/pmix/asked/", node); }

// 64-bit FNV-1a: the same on all nodes.
uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::string FenceName(const std::vector<Rank>& ranks) {
  if (ranks.empty()) return "pmix/fence/all";
  return absl::StrFormat("pmix/fence/%d.%016x", ranks.size(), HashOf(RankList(ranks)));
}

std::string GroupName(absl::string_view name, const std::vector<Rank>& ranks) {
  const std::string what = absl::StrCat(RankList(ranks), " ", name);
  return absl::StrFormat("pmix/group/%d.%016x", ranks.size(), HashOf(what));
}

BetweenNodes::BetweenNodes(NodeMeeting& meeting, const JobMap& map, int node_rank,
                           std::function<void(std::string)> on_broken)
    : meeting_(meeting), map_(map), node_rank_(node_rank), on_broken_(std::move(on_broken)) {}

std::vector<int> BetweenNodes::NodesOf(const std::vector<Rank>& ranks) const {
  return ranks.empty() ? map_.AllNodes() : map_.NodesOf(ranks);
}

void BetweenNodes::Fence(const std::vector<Rank>& ranks, std::string own, PmixWork::Done done) {
  Meet(FenceName(ranks), kInFence, NodesOf(ranks), std::move(own), std::move(done));
}

void BetweenNodes::Group(absl::string_view name, const std::vector<Rank>& ranks,
                         absl::string_view own, PmixWork::GroupDone done) {
  const std::vector<int> nodes = NodesOf(ranks);
  const bool gives_number = nodes.empty() || nodes.front() == node_rank_;
  uint32_t number = 0;
  if (gives_number) {
    MutexLock lock(&mu_);
    number = GroupNumber(groups_++, node_rank_, map_.num_nodes());
  }
  Meet(GroupName(name, ranks), kInGroup, nodes, GroupPart(number, own),
       [done](const PmixWork::Data& parts) {
         done(parts.ok() ? JoinGroupParts(*parts) : parts.status());
       });
}

// All of `nodes` meet under `name`, each time under a new number; `done` gets what all of them
// said.
void BetweenNodes::Meet(const std::string& name, const char* where, const std::vector<int>& nodes,
                        std::string own, PmixWork::Done done) {
  if (nodes.size() < 2) return done(std::move(own));
  int number = 0;
  {
    MutexLock lock(&mu_);
    number = met_[name]++;
  }
  const auto meet = [this, name, where, number, nodes, own = std::move(own), done] {
    const PmixWork::Data all = meeting_.Meet(absl::StrCat(name, "/", number), nodes, own, where);
    if (!all.ok()) on_broken_(std::string(all.status().message()));
    if (all.ok() && number > 0 && node_rank_ == nodes.front()) {
      meeting_.Forget(absl::StrCat(name, "/", number - 1));
    }
    done(all);
  };
  const absl::Status started = StartUnawaited("hl-pmix-meet", meet);
  if (!started.ok()) done(started);
}

void BetweenNodes::Ask(Rank rank, PmixWork::Done done) {
  const int node = map_.NodeOf(rank);
  if (node < 0) return done(absl::NotFoundError(absl::StrCat("there is no rank ", rank)));
  int64_t number = 0;
  {
    MutexLock lock(&mu_);
    number = asked_++;
  }
  const absl::Status started =
      StartUnawaited("hl-pmix-ask", [=, this] { done(AskNode(rank, node, number)); });
  if (!started.ok()) done(started);
}

PmixWork::Data BetweenNodes::AskNode(Rank rank, int node, int64_t number) {
  HLAUNCH_ASSIGN_OR_RETURN(C10dClient * store, meeting_.Store());
  const std::string answer = absl::StrCat("hlaunch/pmix/said/", node_rank_, "/", number);
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t place, store->Add(AskedKey(node), 1));
  HLAUNCH_RETURN_IF_ERROR(
      store->Set(absl::StrCat(AskedKey(node), "/", place), absl::StrCat(rank, " ", answer)));
  HLAUNCH_ASSIGN_OR_RETURN(std::string said, meeting_.Await(answer));
  store->Delete(answer).status().IgnoreError();
  if (said.empty() || said[0] != '+') return absl::NotFoundError("it has said nothing");
  return said.substr(1);
}

void BetweenNodes::Answer(const PmixHost& host) {
  const auto answer = [this, &host] {
    for (int64_t number = 1;;) {
      const absl::Status answered = AnswerNext(host, number);
      if (answered.ok()) ++number;
      if (answered.ok() || absl::IsUnavailable(answered)) continue;  // The store may come back.
      // Once a rank will never call MPI_Init, no node waits for an answer any more.
      if (!absl::IsFailedPrecondition(answered)) on_broken_(std::string(answered.message()));
      return;
    }
  };
  if (map_.num_nodes() < 2) return;
  BrokenUnless(StartUnawaited("hl-pmix-answer", answer));
}

absl::Status BetweenNodes::AnswerNext(const PmixHost& host, int64_t number) {
  const std::string key = absl::StrCat(AskedKey(node_rank_), "/", number);
  HLAUNCH_ASSIGN_OR_RETURN(const std::string question, meeting_.Await(key));
  HLAUNCH_ASSIGN_OR_RETURN(C10dClient * store, meeting_.Store());
  store->Delete(key).status().IgnoreError();
  const std::vector<std::string> words = absl::StrSplit(question, absl::MaxSplits(' ', 1));
  Rank rank = -1;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &rank)) return absl::OkStatus();
  const std::string where = words[1];
  if (map_.NodeOf(rank) != node_rank_) {
    Say(where, absl::NotFoundError("it is of another node"));
    return absl::OkStatus();
  }
  host.Said(rank, [this, where](const PmixWork::Data& data) {
    BrokenUnless(StartUnawaited("hl-pmix-say", [this, where, data] { Say(where, data); }));
  });
  return absl::OkStatus();
}

void BetweenNodes::BrokenUnless(const absl::Status& done) {
  if (!done.ok()) on_broken_(std::string(done.message()));
}

void BetweenNodes::Say(const std::string& key, const PmixWork::Data& data) {
  const absl::StatusOr<C10dClient*> store = meeting_.Store();
  BrokenUnless(store.ok() ? (*store)->Set(key, data.ok() ? absl::StrCat("+", *data) : "-")
                          : store.status());
}

}  // namespace hlaunch
