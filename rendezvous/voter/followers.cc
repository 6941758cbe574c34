// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/followers.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace hlaunch {

uint64_t Followers::NextBeat(Instant now, Duration lease) {
  while (!beats_.empty() && beats_.front().sent < now - lease) beats_.pop_front();
  beats_.push_back({++last_beat_, now});
  return last_beat_;
}

void Followers::Appended(Incarnation from, uint64_t beat, const Ballot& ballot, Instant now) {
  Follower& follower = followers_[from];
  follower.answered = true;
  follower.heard = now;
  follower.ballot = std::max(follower.ballot, ballot);
  if (beat <= follower.beat) return;
  follower.beat = beat;
  if (beats_.empty() || beat < beats_.front().number) return;
  const size_t place = static_cast<size_t>(beat - beats_.front().number);
  if (place < beats_.size()) follower.beat_sent = beats_[place].sent;
}

void Followers::Forgive(Duration stood_still) {
  since_ += stood_still;
  for (auto& [incarnation, follower] : followers_) follower.heard += stood_still;
}

Instant Followers::LeaseBegan(const VoterMembers& members) const {
  std::vector<Instant> sent;
  for (const VoterMember& member : members) {
    if (member.incarnation == self_) {
      sent.push_back(Instant::max());
    } else if (const Follower* follower = Find(member.incarnation)) {
      sent.push_back(follower->beat_sent);
    }
  }
  const size_t needed = static_cast<size_t>(Blocking(static_cast<int>(members.size())));
  if (sent.size() < needed) return Instant::min();
  std::sort(sent.begin(), sent.end(), std::greater<>());
  return sent[needed - 1];
}

int Followers::CountHolding(const VoterMembers& members, const Ballot& ballot) const {
  return static_cast<int>(
      std::count_if(members.begin(), members.end(), [&](const VoterMember& member) {
        return member.incarnation == self_ || Holds(member.incarnation, ballot);
      }));
}

bool Followers::Holds(Incarnation member, const Ballot& ballot) const {
  const Follower* follower = Find(member);
  return follower != nullptr && follower->ballot == ballot;
}

bool Followers::Answered(Incarnation member) const {
  const Follower* follower = Find(member);
  return follower != nullptr && follower->answered;
}

Instant Followers::BeatSent(Incarnation member) const {
  const Follower* follower = Find(member);
  return follower == nullptr ? Instant::min() : follower->beat_sent;
}

uint64_t Followers::LastBeat(Incarnation member) const {
  const Follower* follower = Find(member);
  return follower == nullptr ? 0 : follower->beat;
}

Instant Followers::Heard(Incarnation member) const {
  const Follower* follower = Find(member);
  return follower == nullptr ? since_ : follower->heard;
}

void Followers::Expect(Incarnation member, Instant since) {
  Follower& follower = followers_[member];
  follower.heard = std::max(follower.heard, since);
}

const Followers::Follower* Followers::Find(Incarnation member) const {
  const auto found = followers_.find(member);
  return found == followers_.end() ? nullptr : &found->second;
}

}  // namespace hlaunch
