// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/change_members.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rendezvous/voter/voter_words.h"

namespace hlaunch {
namespace {

using Lapsed = GroupView::Lapsed;

int Count(const VoterMembers& members) { return static_cast<int>(members.size()); }

// Returns the groups, besides the one proposed last, that a process may still believe in.
std::vector<VoterMembers> OtherGroups(const GroupView& view) {
  std::vector<VoterMembers> groups = view.open;
  groups.push_back(view.decided);
  return groups;
}

bool MajorityAnswers(const GroupView& view, const VoterMembers& members) {
  const auto answering = std::count_if(
      members.begin(), members.end(),
      [&](const VoterMember& member) { return view.answering.count(member.incarnation) > 0; });
  return answering >= Majority(Count(members));
}

VoterMembers WithoutDead(const GroupView& view, VoterMembers members) {
  for (const Lapsed& lapsed : view.lapsed) {
    if (lapsed.dead) members = Without(members, lapsed.incarnation);
  }
  return members;
}

// Proposes the group without all dead members, if the living ones are no majority of it, and
// without this leader no majority of another group.
MembersVerdict WithoutAllDead(const GroupView& view) {
  const VoterMembers living = WithoutDead(view, view.members);
  if (Count(living) >= Majority(Count(view.members))) return {};
  for (const VoterMembers& group : OtherGroups(view)) {
    const int rivals = Count(WithoutDead(view, Without(group, view.leader)));
    if (rivals >= Majority(Count(group))) return {};
  }
  return {living,
          absl::StrCat("the group of voters goes on with ", living.size(), " of ",
                       view.members.size(), ": so many are dead that nobody else can be elected")};
}

MembersVerdict WithoutOne(const GroupView& view, const Lapsed& goes) {
  return {Without(view.members, goes.incarnation),
          absl::StrCat(NameOfVoter(view.members, goes.incarnation), " is no voter any more: it ",
                       goes.why)};
}

const Lapsed* LapsedOf(const GroupView& view, const VoterMembers& members) {
  for (const Lapsed& lapsed : view.lapsed) {
    if (FindMember(members, lapsed.incarnation) != nullptr) return &lapsed;
  }
  return nullptr;
}

// Returns true if no process outside `members` may believe that it is a member.
bool AreAll(const GroupView& view, const VoterMembers& members) {
  for (const VoterMembers& group : OtherGroups(view)) {
    for (const VoterMember& member : group) {
      if (FindMember(members, member.incarnation) == nullptr) return false;
    }
  }
  return true;
}

MembersVerdict TakeBack(const GroupView& view) {
  if (SameMembers(view.members, view.decided) || MajorityAnswers(view, view.members)) return {};
  // In a group of two, the other one relies on being asked until it has lapsed.
  if (Count(view.members) == 2 && LapsedOf(view, view.members) == nullptr) return {};
  if (!MajorityAnswers(view, view.decided)) return {};
  return {view.decided, "the voters stay who they were: too many of the new ones do not answer"};
}

MembersVerdict OneLess(const GroupView& view) {
  for (const Lapsed& lapsed : view.lapsed) {
    if (FindMember(view.members, lapsed.incarnation) == nullptr) continue;
    MembersVerdict verdict = WithoutOne(view, lapsed);
    if (MajorityAnswers(view, *verdict.members)) return verdict;
  }
  return {};
}

}  // namespace

MembersVerdict DecideMembers(const GroupView& view) {
  if (MembersVerdict verdict = WithoutAllDead(view); verdict.members) return verdict;
  if (Count(view.members) == 2 && AreAll(view, view.members)) {
    if (const Lapsed* other = LapsedOf(view, view.members)) return WithoutOne(view, *other);
  }
  if (!view.open.empty()) return TakeBack(view);
  if (!view.lapsed.empty()) return OneLess(view);
  if (Count(view.members) >= view.size || view.ready.empty()) return {};
  VoterMembers more = view.members;
  more.push_back(view.ready.front());
  return {more, absl::StrCat(view.ready.front().name, " becomes a voter, one of ", more.size())};
}

}  // namespace hlaunch
