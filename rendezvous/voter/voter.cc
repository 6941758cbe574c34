// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/voter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/voter/voter_words.h"

namespace hlaunch {
namespace {

using Kind = VoterMessage::Kind;

constexpr size_t kMostAnswers = 64;  // Unconfirmed ones; older ones prove less.

Duration ShareOf(Duration most, uint64_t random) {
  return most / 1024 * static_cast<int64_t>(random % 1024);
}

}  // namespace

Voter::Voter(VoterMember self, VoterRule rule) : self_(std::move(self)), rule_(rule) {}

VoterStep Voter::Step(const VoterEvent& event, Instant now, uint64_t random) {
  now_ = now;
  random_ = random;
  if (due_ != Instant::max() && now - due_ > rule_.beat) StoodStill(now - due_);
  Expire();
  std::visit([this](const auto& what) { On(what); }, event);
  Settle();
  due_ = NextInstant();
  out_.next = due_;
  return std::exchange(out_, {});
}

bool Voter::is_member() const { return MayLead() && removed_by_ <= entry_->ballot; }

bool Voter::MayLead() const {
  return entry_ && FindMember(entry_->members, self_.incarnation) != nullptr;
}

Instant Voter::LeadsUntil() const {
  return leading_ && leading_->confirmed() ? leading_->LeaseUntil() : Instant::min();
}

void Voter::On(const VoterFounded& founded) {
  term_ = 1;
  voted_for_ = self_.incarnation;
  entry_ = std::make_shared<VoterEntry>(VoterEntry{{}, 1, {self_}, founded.record});
  Lead("it is the first");
}

void Voter::On(const VoterProposed& proposed) {
  if (!leading_ || !leading_->confirmed() || term_ != proposed.term) {
    out_.denied = absl::StrCat(self_.name, " does not lead in term ", proposed.term);
    if (leader_ == 0) return;
    absl::StrAppend(&out_.denied, ", ", NameOfVoter(entry_->members, leader_), " leads in term ",
                    term_);
    return;
  }
  Replace(entry_->members, proposed.record, entry_->version + 1);
}

void Voter::On(const VoterProvenDead& proof) {
  if (proof.incarnation == self_.incarnation || !known_.dead.insert(proof.incarnation).second)
    return;
  if (leading_ || !is_member() || leader_ != proof.incarnation) return;
  election_at_ = std::min(election_at_, now_ + ShareOf(rule_.beat, random_));
  if (OtherOfTwo() != proof.incarnation || !counted_until_ || now_ > *counted_until_) return;
  GoOnAlone(absl::StrCat(NameOfVoter(entry_->members, proof.incarnation),
                         " is dead, and decided nothing that ", self_.name, " does not hold"));
}

void Voter::On(const VoterCandidates& candidates) {
  const bool news = !known_.candidates || !SameMembers(*known_.candidates, candidates.candidates);
  known_.candidates = candidates.candidates;
  known_.nodes = candidates.nodes;
  if (news && leading_) Append();  // The sooner they answer, the sooner they are voters.
}

void Voter::On(const VoterHeard& heard) {
  const VoterMessage& message = heard.message;
  if (message.to != self_.incarnation) return;  // For the process that was here before.
  switch (message.kind) {
    case Kind::kAppend:
      return HearAppend(message);
    case Kind::kAppended:
      return HearAppended(message);
    case Kind::kRequestPreVote:
    case Kind::kRequestVote:
      return HearRequest(message);
    case Kind::kPreVote:
    case Kind::kVote:
      return HearVote(message);
    case Kind::kRemoved:
      return HearRemoved(message);
  }
}

void Voter::HearAppend(const VoterMessage& message) {
  if (message.term < term_) {
    out_.send.push_back(To(message.from, Kind::kAppended));  // Tells the sender the newer term.
    return;
  }
  TakeTerm(message.term);
  if (leading_) return;  // A term has one leader.
  campaign_.reset();
  if (leader_ != message.from) {
    leader_ = message.from;
    answers_.clear();
    counted_until_.reset();
  }
  heard_ = now_;
  TakeEntry(message);
  Confirm(message);
  PutOffElection(rule_.lease, rule_.lease / 2);
  VoterMessage answer = To(message.from, Kind::kAppended);
  answer.beat = message.beat;
  out_.send.push_back(answer);
  answers_.push_back({message.beat, now_});
  if (answers_.size() > kMostAnswers) answers_.pop_front();
}

void Voter::TakeEntry(const VoterMessage& message) {
  if (message.entry && message.entry->ballot > HeldBallot()) {
    const bool changed = !entry_ || !SameMembers(entry_->members, message.entry->members);
    entry_ = message.entry;
    if (changed) answers_.clear();
    if (changed) counted_until_.reset();
  }
  if (message.ballot > HeldBallot()) counted_until_.reset();  // This voter has missed an entry.
}

void Voter::Confirm(const VoterMessage& message) {
  while (!answers_.empty() && answers_.front().beat <= message.confirmed) {
    const Instant until = answers_.front().sent + Shortened(rule_.lapse_after);
    counted_until_ = std::max(counted_until_.value_or(until), until);
    answers_.pop_front();
  }
}

void Voter::HearAppended(const VoterMessage& message) {
  if (!leading_) return;
  if (message.term > term_) {
    TakeTerm(message.term);
    return;
  }
  if (message.term < term_ || !leading_->Concerns(message.from, known_)) return;
  leading_->Appended(message.from, message.beat, message.ballot, now_);
  const bool of_now = leading_->LastBeat(message.from) == message.beat;
  if (of_now && now_ < leading_->BeatSent(message.from) + rule_.lease) {
    out_.answered.emplace_back(message.from, message.beat);
  }
}

bool Voter::HasPromised() const {
  if (leading_) return leading_->LeaseUntil() > now_;
  return heard_ && !known_.IsDead(leader_) && now_ < *heard_ + rule_.lease;
}

bool Voter::MayVote(const VoterMessage& request) const {
  if (HasPromised() || request.ballot < HeldBallot()) return false;
  if (request.kind == Kind::kRequestPreVote) return request.asked > term_;
  return request.asked == term_ && (voted_for_ == 0 || voted_for_ == request.from);
}

void Voter::HearRequest(const VoterMessage& request) {
  const bool pre = request.kind == Kind::kRequestPreVote;
  if (request.ballot < HeldBallot() && !FindMember(entry_->members, request.from)) {
    out_.send.push_back(To(request.from, Kind::kRemoved));
    return;
  }
  if (!pre && !HasPromised()) TakeTerm(request.asked);
  VoterMessage answer = To(request.from, pre ? Kind::kPreVote : Kind::kVote);
  answer.asked = request.asked;
  answer.granted = MayVote(request);
  if (answer.granted && !pre) {
    voted_for_ = request.from;
    PutOffElection(rule_.lease / 2, rule_.lease / 2);
  }
  out_.send.push_back(answer);
}

void Voter::HearVote(const VoterMessage& message) {
  if (!campaign_) return;
  if (message.term > term_) {
    TakeTerm(message.term);
    return;
  }
  const bool pre = message.kind == Kind::kPreVote;
  if (pre != campaign_->pre || message.asked != campaign_->term || !message.granted) return;
  campaign_->votes.insert(message.from);
  CountVotes();
}

void Voter::HearRemoved(const VoterMessage& message) {
  if (leading_ || message.ballot <= std::max(removed_by_, HeldBallot())) return;
  if (is_member()) {
    out_.news.push_back(absl::StrCat(self_.name, " is no voter any more: a newer group, of term ",
                                     message.ballot.term, ", is without it"));
  }
  removed_by_ = message.ballot;
  campaign_.reset();
  // This voter must try again: that group may never be decided, and all processes that hold it
  // may die. Then this one's entry is needed.
  PutOffElection(2 * rule_.lease, 2 * rule_.lease);
}

VoterMessage Voter::To(Incarnation to, Kind kind) const {
  VoterMessage message;
  message.kind = kind;
  message.from = self_.incarnation;
  message.to = to;
  message.term = term_;
  message.ballot = HeldBallot();
  return message;
}

void Voter::TakeTerm(Term term) {
  if (term <= term_) return;
  term_ = term;
  voted_for_ = 0;
  counted_until_.reset();
  if (campaign_) PutOffElection(rule_.lease / 4, rule_.lease / 4);
  campaign_.reset();
  if (leading_) StepDown(absl::StrCat("a voter has voted in term ", term));
}

void Voter::PutOffElection(Duration least, Duration spread) {
  election_at_ = now_ + least + ShareOf(spread, random_);
}

void Voter::StoodStill(Duration late) {
  if (leading_) {
    leading_->Forgive(late);
  } else {
    PutOffElection(rule_.beat, rule_.beat);  // First read what arrived meanwhile.
  }
}

std::optional<Incarnation> Voter::OtherOfTwo() const {
  if (!is_member() || entry_->members.size() != 2) return std::nullopt;
  return Without(entry_->members, self_.incarnation).front().incarnation;
}

void Voter::Campaigns() {
  const Instant silent_since = heard_.value_or(now_);
  if (rule_.on_host_loss == OnHostLoss::kContinue && OtherOfTwo() == leader_ &&
      now_ >= silent_since + rule_.continue_after) {
    GoOnAlone(absl::StrCat(NameOfVoter(entry_->members, leader_), " has not answered for ",
                           SecondsWords(now_ - silent_since),
                           ", and --on-host-loss continue says not to wait for it"));
    return;
  }
  Canvass(/*pre=*/true);
  if (!leading_ && !is_member()) PutOffElection(2 * rule_.lease, 2 * rule_.lease);
}

void Voter::Canvass(bool pre) {
  if (!pre) {
    TakeTerm(term_ + 1);
    voted_for_ = self_.incarnation;
  }
  campaign_ = Campaign{pre, pre ? term_ + 1 : term_, {self_.incarnation}};
  PutOffElection(rule_.lease / 4, rule_.lease / 4);
  for (const VoterMember& member : entry_->members) {
    if (member.incarnation == self_.incarnation || known_.IsDead(member.incarnation)) continue;
    VoterMessage request = To(member.incarnation, pre ? Kind::kRequestPreVote : Kind::kRequestVote);
    request.asked = campaign_->term;
    out_.send.push_back(request);
  }
  CountVotes();
}

void Voter::CountVotes() {
  const int members = static_cast<int>(entry_->members.size());
  const auto votes = std::count_if(
      entry_->members.begin(), entry_->members.end(),
      [&](const VoterMember& member) { return campaign_->votes.count(member.incarnation) > 0; });
  if (votes < Majority(members)) return;
  if (campaign_->pre) return Canvass(/*pre=*/false);
  std::string because = absl::StrCat(votes, " of ", members, " voters agree");
  if (leader_ != 0 && heard_) {
    because =
        absl::StrCat(NameOfVoter(entry_->members, leader_),
                     known_.IsDead(leader_) ? " is dead" : " has not answered for ",
                     known_.IsDead(leader_) ? "" : SecondsWords(now_ - *heard_), "; ", because);
  }
  Lead(because);
}

void Voter::GoOnAlone(const std::string& because) {
  TakeTerm(term_ + 1);
  voted_for_ = self_.incarnation;
  VoterEntry alone = *entry_;
  alone.members = {self_};
  entry_ = std::make_shared<VoterEntry>(std::move(alone));
  Lead(because);
}

void Voter::Lead(const std::string& because) {
  campaign_.reset();
  leading_.emplace(self_.incarnation, rule_, entry_, now_);
  because_ = because;
  leader_ = 0;
  heard_.reset();
  answers_.clear();
  counted_until_.reset();
  Replace(entry_->members, entry_->record, entry_->version);
}

void Voter::StepDown(const std::string& why) {
  if (leading_->confirmed()) {
    out_.leads.reset();
    out_.lost = absl::StrCat(self_.name, " does not lead any more: ", why);
    out_.news.push_back(*out_.lost);
  }
  leading_.reset();
  PutOffElection(rule_.lease / 4, rule_.lease / 4);
}

void Voter::Expire() {
  if (leading_ && now_ >= leading_->OverAt()) StepDown(WhoIsMissing(now_));
}

void Voter::Settle() {
  if (leading_) {
    do {
      Decide();
    } while (ChangeMembers());
    if (now_ >= leading_->next_beat()) Append();
  } else if (MayLead() && now_ >= election_at_) {
    Campaigns();
    if (leading_) Settle();
  }
}

void Voter::Decide() {
  const bool confirmed = leading_->confirmed();
  const uint64_t version = leading_->decided()->version;
  if (!leading_->Decide(entry_, known_, now_)) return;
  if (!confirmed) {
    out_.leads = term_;
    out_.news.push_back(absl::StrCat(self_.name, " leads from term ", term_, ": ", because_));
  } else if (entry_->version != version) {
    out_.decided = entry_->version;
  }
}

bool Voter::ChangeMembers() {
  if (!leading_->confirmed()) return false;
  MembersVerdict verdict = DecideMembers(leading_->View(*entry_, known_, now_));
  if (!verdict.members) return false;
  out_.news.push_back(verdict.reason);
  Replace(*std::move(verdict.members), entry_->record, entry_->version);
  return true;
}

void Voter::Replace(VoterMembers members, std::string record, uint64_t version) {
  leading_->Propose(members, *entry_, now_);
  entry_ = std::make_shared<VoterEntry>(VoterEntry{
      {term_, entry_->ballot.index + 1}, version, std::move(members), std::move(record)});
  Append();
}

void Voter::Append() {
  const uint64_t beat = leading_->NextBeat(now_);
  for (const VoterMember& member : leading_->Listeners(*entry_, known_, beat)) {
    const Incarnation to = member.incarnation;
    if (known_.IsDead(to)) continue;
    VoterMessage append = To(to, Kind::kAppend);
    append.beat = beat;
    append.confirmed = leading_->LastBeat(to);
    if (leading_->Needs(to, *entry_, now_)) append.entry = entry_;
    out_.send.push_back(std::move(append));
  }
}

Instant Voter::NextInstant() const {
  if (leading_) return std::min(leading_->OverAt(), leading_->next_beat());
  return MayLead() ? election_at_ : Instant::max();
}

std::string Voter::Waits(Instant now) const {
  if (!is_member() || (leading_ && leading_->decided() == entry_)) return "";
  return WhoIsMissing(now);
}

std::string Voter::WhoIsMissing(Instant now) const {
  std::vector<Incarnation> missing;
  for (const VoterMember& member : entry_->members) {
    const Incarnation incarnation = member.incarnation;
    if (incarnation == self_.incarnation) continue;
    if (leading_ && leading_->HeardOfLate(incarnation, now)) continue;
    missing.push_back(incarnation);
  }
  const int members = static_cast<int>(entry_->members.size());
  std::string words = absl::StrCat(
      self_.name, " waits for ", missing.empty() ? "an answer" : NamesOf(entry_->members, missing),
      ": ", Majority(members), " of ", members, " voters must agree");
  if (members == 2) {
    absl::StrAppend(&words,
                    "; one of two cannot tell whether the other one is dead, so it goes on ",
                    "by proof of its death, or with --on-host-loss continue");
  }
  return words;
}

}  // namespace hlaunch
