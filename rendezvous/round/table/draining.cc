// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/table/draining.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/values/limits.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

bool Names(const DrainedNode& drained, const NodeInfo& info) {
  return drained.incarnation == info.incarnation && drained.node_id == info.node_id;
}

bool IsHere(const Seat& seat) { return !seat.left && !seat.finished; }

// Returns the seats that are here and for which `fits` is true.
template <typename Fits>
std::vector<const Seat*> SeatsHere(const Membership& membership, Fits fits) {
  std::vector<const Seat*> seats;
  for (const auto& [id, seat] : membership.seats()) {
    if (IsHere(seat) && fits(seat)) seats.push_back(&seat);
  }
  return seats;
}

// Finds seats by the host's full name, the node id, the host's short name, or the node rank: the
// first of these that fits any seat counts.
std::vector<const Seat*> SeatsNamed(const JobRecord& record, const Membership& membership,
                                    const std::string& name) {
  int rank = -1;
  const bool is_rank = absl::SimpleAtoi(name, &rank);
  auto seats = SeatsHere(membership, [&](const Seat& seat) { return seat.info.host == name; });
  if (!seats.empty()) return seats;
  seats = SeatsHere(membership, [&](const Seat& seat) { return seat.info.node_id == name; });
  if (!seats.empty()) return seats;
  const std::string short_name = absl::StrCat(name, ".");
  seats = SeatsHere(membership,
                    [&](const Seat& seat) { return absl::StartsWith(seat.info.host, short_name); });
  if (!seats.empty() || !is_rank) return seats;
  return SeatsHere(membership, [&](const Seat& seat) {
    return InRound(record, seat) && seat.node_rank == rank;
  });
}

std::string Listed(const JobRecord& record, const std::vector<const Seat*>& seats) {
  std::vector<std::string> names;
  for (const Seat* seat : seats) {
    const std::string rank = absl::StrCat("node rank ", seat->node_rank, ", ");
    names.push_back(absl::StrCat(seat->info.host, " (", InRound(record, *seat) ? rank : "", "id ",
                                 seat->info.node_id, ")"));
  }
  std::sort(names.begin(), names.end(), NaturalLess);
  return names.empty() ? "none" : NameSome(names);
}

absl::StatusOr<const Seat*> SeatNamed(const JobRecord& record, const Membership& membership,
                                      const std::string& name) {
  const std::vector<const Seat*> seats = SeatsNamed(record, membership, name);
  if (seats.size() == 1) return seats.front();
  if (seats.empty()) {
    const auto all = SeatsHere(membership, [](const Seat&) { return true; });
    return absl::NotFoundError(
        absl::StrCat("the job has no node ", name, "; it has ", Listed(record, all)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      name, " names ", seats.size(), " nodes: ", Listed(record, seats), "; name one by its id"));
}

// "node1 is drained: ECC", "node1 will be gone within 110 s: the host goes down".
std::string Describe(const std::vector<std::string>& hosts, const DrainedNode& first) {
  const std::string what =
      first.within == Duration::zero()
          ? absl::StrCat(hosts.size() == 1 ? " is" : " are", " drained")
          : absl::StrCat(" will be gone within ", WholeSeconds(first.within), " s");
  return absl::StrCat(NameSome(hosts), what, ": ", first.reason);
}

// Returns the seats of drained nodes, in the order of their ids. A job of thousands of nodes asks
// for them with each message, so this looks at no other seat.
std::vector<const Seat*> DrainedSeats(const JobRecord& record, const Membership& membership) {
  std::vector<const Seat*> seats;
  for (const DrainedNode& drained : record.drained) {
    const Seat* seat = membership.Find(drained.node_id);
    if (seat != nullptr && Names(drained, seat->info)) seats.push_back(seat);
  }
  std::sort(seats.begin(), seats.end(),
            [](const Seat* a, const Seat* b) { return a->info.node_id < b->info.node_id; });
  return seats;
}

int CountUndrained(const JobRecord& record, const Membership& membership, Instant t) {
  const std::vector<const Seat*> drained = DrainedSeats(record, membership);
  const auto counted = [&](const Seat* seat) {
    return IsHere(*seat) && !membership.Suspect(*seat, t);
  };
  return membership.Usable(t) -
         static_cast<int>(std::count_if(drained.begin(), drained.end(), counted));
}

// With --on-loss wait a round begins with as many nodes as the one before.
int NodesNeeded(const JobRecord& record) {
  const bool as_many = record.policy.on_loss == OnLoss::kWait;
  return std::max(record.policy.min_nodes, as_many ? record.round_nodes : 0);
}

bool IsEnough(const JobRecord& record, int nodes) {
  return nodes - nodes % record.policy.node_multiple >= NodesNeeded(record);
}

std::string WhatIsLacking(const JobRecord& record, size_t drained, int usable) {
  const int needed = NodesNeeded(record);
  return absl::StrCat("; nobody can take ", drained == 1 ? "its" : "their",
                      " place: the job needs ", needed, needed == 1 ? " node" : " nodes",
                      " and has ", usable, " without; the round goes on");
}

}  // namespace

const DrainedNode* FindDrained(const JobRecord& record, const NodeInfo& info) {
  for (const DrainedNode& drained : record.drained) {
    if (Names(drained, info)) return &drained;
  }
  return nullptr;
}

std::string DrainedWords(const JobRecord& record, const Membership& membership) {
  if (record.drained.empty()) return "";
  std::vector<std::string> names;
  for (const Seat* seat : DrainedSeats(record, membership)) {
    if (!IsHere(*seat)) continue;
    names.push_back(
        absl::StrCat(seat->info.host, " (", FindDrained(record, seat->info)->reason, ")"));
  }
  std::sort(names.begin(), names.end(), NaturalLess);
  return names.empty() ? "" : absl::StrCat("; drained: ", NameSome(names));
}

int DrainedMembers(const JobRecord& record, const Membership& membership) {
  if (record.drained.empty()) return 0;
  const std::vector<const Seat*> drained = DrainedSeats(record, membership);
  return static_cast<int>(std::count_if(drained.begin(), drained.end(),
                                        [&](const Seat* seat) { return InRound(record, *seat); }));
}

bool EnoughUndrained(const JobRecord& record, const Membership& membership, Instant t) {
  return IsEnough(record, CountUndrained(record, membership, t));
}

DrainVerdict DecideDrain(const JobRecord& record, const Membership& membership, Instant t) {
  if (record.drained.empty() || record.succeeded > 0) return {};
  std::vector<const Seat*> members = DrainedSeats(record, membership);
  std::erase_if(members, [&](const Seat* seat) {
    return !IsHere(*seat) || !InRound(record, *seat) || seat->local;
  });
  if (members.empty()) return {};
  std::vector<std::string> hosts;
  for (const Seat* seat : members) hosts.push_back(seat->info.host);
  std::sort(hosts.begin(), hosts.end(), NaturalLess);
  const std::string who = Describe(hosts, *FindDrained(record, members.front()->info));
  const int usable = CountUndrained(record, membership, t);
  if (IsEnough(record, usable)) return {DrainVerdict::Kind::kStop, who};
  return {DrainVerdict::Kind::kGoOn,
          absl::StrCat(who, WhatIsLacking(record, hosts.size(), usable))};
}

std::vector<std::string> NodesToDismiss(const JobRecord& record, const Membership& membership,
                                        Instant t) {
  std::vector<std::string> ids;
  if (record.drained.empty() || record.state == JobState::kOver) return ids;
  const bool unneeded =
      record.state == JobState::kForming && EnoughUndrained(record, membership, t);
  for (const Seat* seat : DrainedSeats(record, membership)) {
    if (!IsHere(*seat) || seat->local) continue;
    if (unneeded || !InRound(record, *seat)) ids.push_back(seat->info.node_id);
  }
  return ids;
}

absl::StatusOr<std::string> Draining::Take(const DrainRequest& request, Instant t) {
  if (record_->state == JobState::kOver) return absl::FailedPreconditionError("the job is over");
  HLAUNCH_ASSIGN_OR_RETURN(const Seat* const seat, SeatNamed(*record_, membership_, request.node));
  const std::string& host = seat->info.host;
  const DrainedNode* known = FindDrained(*record_, seat->info);
  if (request.undrain) {
    if (known != nullptr && known->own) {
      return absl::FailedPreconditionError(
          absl::StrCat(host, " is drained by its own word: ", known->reason));
    }
    Forget(*seat);
    membership_.TellAll();
    return absl::StrCat(host, known == nullptr ? " was not drained" : " is used again");
  }
  if (seat->local || record_->policy.max_nodes + record_->policy.spares == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(host,
                     seat->local ? " has the job's rendezvous, which would go with it"
                                 : " is the job's only node",
                     "; stop the job instead (hlaunch stop, or Ctrl-C there)"));
  }
  if (known == nullptr || !known->own) {
    Mark(*seat, request.reason.empty() ? "no reason was given" : request.reason, request.within,
         false);
  }
  const bool runs = record_->state == JobState::kRunning || record_->state == JobState::kPreflight;
  const DrainVerdict verdict = runs ? DecideDrain(*record_, membership_, t) : DrainVerdict();
  if (verdict.kind == DrainVerdict::Kind::kGoOn) return verdict.reason;
  if (verdict.kind == DrainVerdict::Kind::kStop && InRound(*record_, *seat)) {
    return absl::StrCat("round ", record_->round, " ends, and the next begins without ", host);
  }
  if (InRound(*record_, *seat) && !EnoughUndrained(*record_, membership_, t)) {
    return absl::StrCat(host, " takes part in the next round only if no other node can take its ",
                        "place");
  }
  return absl::StrCat(host, " takes no part in the next round");
}

// A later entry replaces an earlier one.
void Draining::Mark(const Seat& seat, absl::string_view reason, Duration within, bool own) {
  Forget(seat);
  std::vector<DrainedNode>& all = record_.Change().drained;
  if (all.size() >= kMaxNodes) all.erase(all.begin());
  all.push_back({seat.info.node_id, seat.info.incarnation,
                 std::string(reason.substr(0, kMaxTextBytes)), within, own});
  membership_.TellAll();
}

void Draining::Note(const Seat& seat, const NodeUpdate& update) {
  if (record_->state == JobState::kOver || !IsHere(seat)) return;
  if (seat.local) return NoteLocal(seat, update);
  const DrainedNode* known = FindDrained(*record_, seat.info);
  const bool own = known != nullptr && known->own;
  if (update.drain_reason.empty()) {
    if (own) Forget(seat);
  } else if (!own || known->reason != update.drain_reason) {
    Mark(seat, update.drain_reason, update.drain_within, true);
  }
}

// No other node takes the place of the node that has the rendezvous while that node lives.
void Draining::NoteLocal(const Seat& seat, const NodeUpdate& update) {
  if (update.drain_reason == told_local_) return;
  told_local_ = update.drain_reason;
  if (told_local_.empty()) return;
  const DrainedNode drained = {"", 0, update.drain_reason, update.drain_within, true};
  news_.Say(absl::StrCat(Describe({seat.info.host}, drained),
                         "; it has the job's rendezvous, so it stays: save a checkpoint now"));
  membership_.TellAll();
}

void Draining::Forget(const Seat& seat) {
  if (FindDrained(*record_, seat.info) == nullptr) return;
  std::erase_if(record_.Change().drained,
                [&](const DrainedNode& one) { return Names(one, seat.info); });
}

std::string Draining::Look(Instant t) {
  const DrainVerdict verdict = DecideDrain(*record_, membership_, t);
  if (verdict.kind == DrainVerdict::Kind::kStop) return verdict.reason;
  if (verdict.reason == told_) return "";
  told_ = verdict.reason;
  if (!told_.empty()) {
    news_.Say(told_);
    membership_.TellAll();
  }
  return "";
}

}  // namespace hlaunch
