// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/leadership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/voter/voter_words.h"

namespace hlaunch {
namespace {

constexpr size_t kProbed = 2;  // The best candidates, which are asked if they answer,
constexpr size_t kInTurn = 1;  // and others in turn, in case the best do not.

}  // namespace

Instant Leadership::LeaseUntil() const {
  // All groups that a process may hold count.
  Instant began = followers_.LeaseBegan(decided_->members);
  for (const VoterMembers& group : open_) {
    began = std::min(began, followers_.LeaseBegan(group));
  }
  if (began == Instant::max() || began == Instant::min()) return began;
  return began + Shortened(rule_.lease);
}

void Leadership::Propose(const VoterMembers& members, const VoterEntry& entry, Instant now) {
  for (const VoterMember& member : members) {
    if (!FindMember(entry.members, member.incarnation)) followers_.Expect(member.incarnation, now);
  }
  const auto same = [&](const VoterMembers& group) { return SameMembers(group, members); };
  if (same(decided_->members) || std::any_of(open_.begin(), open_.end(), same)) return;
  open_.push_back(members);
}

bool Leadership::IsHeld(const VoterEntry& entry, const KnownProcesses& known, Instant now) const {
  const int members = static_cast<int>(entry.members.size());
  if (followers_.CountHolding(entry.members, entry.ballot) < Majority(members)) return false;
  // In a group of two, the other one relies on knowing each decision until it has lapsed.
  const VoterMembers& former = decided_->members;
  return former.size() != 2 ||
         std::all_of(former.begin(), former.end(), [&](const VoterMember& member) {
           const Incarnation one = member.incarnation;
           return one == self_ || HasLapsed(one, known, now) || followers_.Holds(one, entry.ballot);
         });
}

bool Leadership::Decide(const SharedEntry& entry, const KnownProcesses& known, Instant now) {
  if (decided_->ballot == entry->ballot || !IsHeld(*entry, known, now) || LeaseUntil() <= now) {
    return false;
  }
  decided_ = entry;
  open_.clear();
  confirmed_ = true;
  return true;
}

bool Leadership::HasLapsed(Incarnation one, const KnownProcesses& known, Instant now) const {
  return known.IsDead(one) || now - followers_.Heard(one) >= rule_.lapse_after;
}

bool Leadership::Concerns(Incarnation one, const KnownProcesses& known) const {
  const auto is_in = [&](const VoterMembers& members) { return FindMember(members, one); };
  return is_in(decided_->members) || (known.candidates && is_in(*known.candidates)) ||
         std::any_of(open_.begin(), open_.end(), is_in);
}

VoterMembers Leadership::AllConcerned() const {
  VoterMembers all = decided_->members;
  for (const VoterMembers& group : open_) {
    for (const VoterMember& member : group) {
      if (!FindMember(all, member.incarnation)) all.push_back(member);
    }
  }
  return all;
}

GroupView Leadership::View(const VoterEntry& entry, const KnownProcesses& known,
                           Instant now) const {
  GroupView view;
  view.leader = self_;
  view.members = entry.members;
  view.decided = decided_->members;
  view.open = open_;
  AddLapsed(view, known, now);
  if (!known.candidates) return view;
  view.size = GroupSize(known.nodes);
  const VoterMembers all = AllConcerned();
  for (const VoterMember& candidate : *known.candidates) {
    const Incarnation one = candidate.incarnation;
    // If this process has just stood still, the answer is to an old append. The lease of the larger
    // group would begin with that and might be over at once.
    const bool fresh = followers_.BeatSent(one) >= now - rule_.lease / 2;
    if (fresh && !FindMember(all, one) && !known.IsDead(one) && Answers(one, now)) {
      view.ready.push_back(candidate);
    }
  }
  return view;
}

void Leadership::AddLapsed(GroupView& view, const KnownProcesses& known, Instant now) const {
  std::vector<GroupView::Lapsed> silent, gone;
  view.answering.insert(self_);
  for (const VoterMember& member : Without(AllConcerned(), self_)) {
    const Incarnation one = member.incarnation;
    if (Answers(one, now)) view.answering.insert(one);
    const bool wanted = !known.candidates || FindMember(*known.candidates, one) != nullptr;
    if (known.IsDead(one)) {
      view.lapsed.push_back({one, true, "is dead"});
    } else if (HasLapsed(one, known, now)) {
      silent.push_back(
          {one, false,
           absl::StrCat("has not answered for ", SecondsWords(now - followers_.Heard(one)))});
    } else if (!wanted && view.members.size() > 2) {  // In a group of two it is needed.
      gone.push_back({one, false, "is not among the job's nodes any more"});
    }
  }
  view.lapsed.insert(view.lapsed.end(), silent.begin(), silent.end());
  view.lapsed.insert(view.lapsed.end(), gone.begin(), gone.end());
}

uint64_t Leadership::NextBeat(Instant now) {
  next_beat_ = now + rule_.beat;
  return followers_.NextBeat(now, rule_.lease);
}

VoterMembers Leadership::Listeners(const VoterEntry& entry, const KnownProcesses& known,
                                   uint64_t beat) const {
  VoterMembers listeners = AllConcerned();
  const bool full = static_cast<int>(entry.members.size()) >= GroupSize(known.nodes);
  if (!known.candidates || full) return Without(listeners, self_);
  const VoterMembers& candidates = *known.candidates;
  const auto add_up_to = [&](size_t more, size_t first) {
    const size_t most = listeners.size() + more;
    for (size_t i = 0; i < candidates.size() && listeners.size() < most; ++i) {
      const VoterMember& candidate = candidates[(first + i) % candidates.size()];
      const Incarnation one = candidate.incarnation;
      if (!known.IsDead(one) && !FindMember(listeners, one)) listeners.push_back(candidate);
    }
  };
  add_up_to(kProbed, 0);
  add_up_to(kInTurn, beat);
  return Without(listeners, self_);
}

bool Leadership::Needs(Incarnation one, const VoterEntry& entry, Instant now) const {
  // A member that must go does not get the entry before that is decided: else it might hold the
  // newest entry of all living processes, and could not be elected with it. A silent member does
  // not get a large entry again and again.
  return FindMember(entry.members, one) && now - followers_.Heard(one) <= rule_.lease &&
         !followers_.Holds(one, entry.ballot);
}

}  // namespace hlaunch
