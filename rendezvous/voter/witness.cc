// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/voter/witness.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/voter/witness_words.h"

namespace hlaunch {
namespace {

using Kind = WitnessMessage::Kind;

constexpr size_t kMostAnswers = 64;  // Unconfirmed ones; older ones prove less.

Duration ShareOf(Duration most, uint64_t random) {
  return most / 1024 * static_cast<int64_t>(random % 1024);
}

}  // namespace

Witness::Witness(WitnessMember self, WitnessRule rule) : self_(std::move(self)), rule_(rule) {}

WitnessStep Witness::Step(const WitnessEvent& event, Instant now, uint64_t random) {
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

bool Witness::is_member() const { return MayLead() && removed_by_ <= entry_->ballot; }

bool Witness::MayLead() const {
  return entry_ && FindMember(entry_->members, self_.incarnation) != nullptr;
}

Instant Witness::LeadsUntil() const {
  return leading_ && leading_->confirmed() ? leading_->LeaseUntil() : Instant::min();
}

void Witness::On(const WitnessFounded& founded) {
  term_ = 1;
  voted_for_ = self_.incarnation;
  entry_ = std::make_shared<WitnessEntry>(WitnessEntry{{}, 1, {self_}, founded.record});
  Lead("it is the first");
}

void Witness::On(const WitnessProposed& proposed) {
  if (!leading_ || !leading_->confirmed() || term_ != proposed.term) {
    out_.denied = absl::StrCat(self_.name, " does not lead in term ", proposed.term);
    if (leader_ == 0) return;
    absl::StrAppend(&out_.denied, ", ", NameOfWitness(entry_->members, leader_), " leads in term ",
                    term_);
    return;
  }
  Replace(entry_->members, proposed.record, entry_->version + 1);
}

void Witness::On(const WitnessProvenDead& proof) {
  if (proof.incarnation == self_.incarnation || !known_.dead.insert(proof.incarnation).second)
    return;
  if (leading_ || !is_member() || leader_ != proof.incarnation) return;
  election_at_ = std::min(election_at_, now_ + ShareOf(rule_.beat, random_));
  if (OtherOfTwo() != proof.incarnation || !counted_until_ || now_ > *counted_until_) return;
  GoOnAlone(absl::StrCat(NameOfWitness(entry_->members, proof.incarnation),
                         " is dead, and decided nothing that ", self_.name, " does not hold"));
}

void Witness::On(const WitnessCandidates& candidates) {
  const bool news = !known_.candidates || !SameMembers(*known_.candidates, candidates.candidates);
  known_.candidates = candidates.candidates;
  known_.nodes = candidates.nodes;
  if (news && leading_) Append();  // The sooner they answer, the sooner they are witnesses.
}

void Witness::On(const WitnessHeard& heard) {
  const WitnessMessage& message = heard.message;
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

void Witness::HearAppend(const WitnessMessage& message) {
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
  WitnessMessage answer = To(message.from, Kind::kAppended);
  answer.beat = message.beat;
  out_.send.push_back(answer);
  answers_.push_back({message.beat, now_});
  if (answers_.size() > kMostAnswers) answers_.pop_front();
}

void Witness::TakeEntry(const WitnessMessage& message) {
  if (message.entry && message.entry->ballot > HeldBallot()) {
    const bool changed = !entry_ || !SameMembers(entry_->members, message.entry->members);
    entry_ = message.entry;
    if (changed) answers_.clear();
    if (changed) counted_until_.reset();
  }
  if (message.ballot > HeldBallot()) counted_until_.reset();  // This witness has missed an entry.
}

void Witness::Confirm(const WitnessMessage& message) {
  while (!answers_.empty() && answers_.front().beat <= message.confirmed) {
    const Instant until = answers_.front().sent + Shortened(rule_.lapse_after);
    counted_until_ = std::max(counted_until_.value_or(until), until);
    answers_.pop_front();
  }
}

void Witness::HearAppended(const WitnessMessage& message) {
  if (!leading_) return;
  if (message.term > term_) {
    TakeTerm(message.term);
    return;
  }
  if (message.term < term_ || !leading_->Concerns(message.from, known_)) return;
  leading_->Appended(message.from, message.beat, message.ballot, now_);
}

bool Witness::HasPromised() const {
  if (leading_) return leading_->LeaseUntil() > now_;
  return heard_ && !known_.IsDead(leader_) && now_ < *heard_ + rule_.lease;
}

bool Witness::MayVote(const WitnessMessage& request) const {
  if (HasPromised() || request.ballot < HeldBallot()) return false;
  if (request.kind == Kind::kRequestPreVote) return request.asked > term_;
  return request.asked == term_ && (voted_for_ == 0 || voted_for_ == request.from);
}

void Witness::HearRequest(const WitnessMessage& request) {
  const bool pre = request.kind == Kind::kRequestPreVote;
  if (request.ballot < HeldBallot() && !FindMember(entry_->members, request.from)) {
    out_.send.push_back(To(request.from, Kind::kRemoved));
    return;
  }
  if (!pre && !HasPromised()) TakeTerm(request.asked);
  WitnessMessage answer = To(request.from, pre ? Kind::kPreVote : Kind::kVote);
  answer.asked = request.asked;
  answer.granted = MayVote(request);
  if (answer.granted && !pre) {
    voted_for_ = request.from;
    PutOffElection(rule_.lease / 2, rule_.lease / 2);
  }
  out_.send.push_back(answer);
}

void Witness::HearVote(const WitnessMessage& message) {
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

void Witness::HearRemoved(const WitnessMessage& message) {
  if (leading_ || message.ballot <= std::max(removed_by_, HeldBallot())) return;
  if (is_member()) {
    out_.news.push_back(absl::StrCat(self_.name, " is no witness any more: a newer group, of term ",
                                     message.ballot.term, ", is without it"));
  }
  removed_by_ = message.ballot;
  campaign_.reset();
  // This witness must try again: that group may never be decided, and all processes that hold it
  // may die. Then this one's entry is needed.
  PutOffElection(2 * rule_.lease, 2 * rule_.lease);
}

WitnessMessage Witness::To(Incarnation to, Kind kind) const {
  WitnessMessage message;
  message.kind = kind;
  message.from = self_.incarnation;
  message.to = to;
  message.term = term_;
  message.ballot = HeldBallot();
  return message;
}

void Witness::TakeTerm(Term term) {
  if (term <= term_) return;
  term_ = term;
  voted_for_ = 0;
  counted_until_.reset();
  if (campaign_) PutOffElection(rule_.lease / 4, rule_.lease / 4);
  campaign_.reset();
  if (leading_) StepDown(absl::StrCat("a witness has voted in term ", term));
}

void Witness::PutOffElection(Duration least, Duration spread) {
  election_at_ = now_ + least + ShareOf(spread, random_);
}

void Witness::StoodStill(Duration late) {
  if (leading_) {
    leading_->Forgive(late);
  } else {
    PutOffElection(rule_.beat, rule_.beat);  // First read what arrived meanwhile.
  }
}

std::optional<Incarnation> Witness::OtherOfTwo() const {
  if (!is_member() || entry_->members.size() != 2) return std::nullopt;
  return Without(entry_->members, self_.incarnation).front().incarnation;
}

void Witness::Campaigns() {
  const Instant silent_since = heard_.value_or(now_);
  if (rule_.on_host_loss == OnHostLoss::kContinue && OtherOfTwo() == leader_ &&
      now_ >= silent_since + rule_.continue_after) {
    GoOnAlone(absl::StrCat(NameOfWitness(entry_->members, leader_), " has not answered for ",
                           SecondsWords(now_ - silent_since),
                           ", and --on-host-loss continue says not to wait for it"));
    return;
  }
  Canvass(/*pre=*/true);
  if (!leading_ && !is_member()) PutOffElection(2 * rule_.lease, 2 * rule_.lease);
}

void Witness::Canvass(bool pre) {
  if (!pre) {
    TakeTerm(term_ + 1);
    voted_for_ = self_.incarnation;
  }
  campaign_ = Campaign{pre, pre ? term_ + 1 : term_, {self_.incarnation}};
  PutOffElection(rule_.lease / 4, rule_.lease / 4);
  for (const WitnessMember& member : entry_->members) {
    if (member.incarnation == self_.incarnation || known_.IsDead(member.incarnation)) continue;
    WitnessMessage request =
        To(member.incarnation, pre ? Kind::kRequestPreVote : Kind::kRequestVote);
    request.asked = campaign_->term;
    out_.send.push_back(request);
  }
  CountVotes();
}

void Witness::CountVotes() {
  const int members = static_cast<int>(entry_->members.size());
  const auto votes = std::count_if(
      entry_->members.begin(), entry_->members.end(),
      [&](const WitnessMember& member) { return campaign_->votes.count(member.incarnation) > 0; });
  if (votes < Majority(members)) return;
  if (campaign_->pre) return Canvass(/*pre=*/false);
  std::string because = absl::StrCat(votes, " of ", members, " witnesses agree");
  if (leader_ != 0 && heard_) {
    because =
        absl::StrCat(NameOfWitness(entry_->members, leader_),
                     known_.IsDead(leader_) ? " is dead" : " has not answered for ",
                     known_.IsDead(leader_) ? "" : SecondsWords(now_ - *heard_), "; ", because);
  }
  Lead(because);
}

void Witness::GoOnAlone(const std::string& because) {
  TakeTerm(term_ + 1);
  voted_for_ = self_.incarnation;
  WitnessEntry alone = *entry_;
  alone.members = {self_};
  entry_ = std::make_shared<WitnessEntry>(std::move(alone));
  Lead(because);
}

void Witness::Lead(const std::string& because) {
  campaign_.reset();
  leading_.emplace(self_.incarnation, rule_, entry_, now_);
  because_ = because;
  leader_ = 0;
  heard_.reset();
  answers_.clear();
  counted_until_.reset();
  Replace(entry_->members, entry_->record, entry_->version);
}

void Witness::StepDown(const std::string& why) {
  if (leading_->confirmed()) {
    out_.leads.reset();
    out_.lost = absl::StrCat(self_.name, " does not lead any more: ", why);
    out_.news.push_back(*out_.lost);
  }
  leading_.reset();
  PutOffElection(rule_.lease / 4, rule_.lease / 4);
}

void Witness::Expire() {
  if (leading_ && now_ >= leading_->OverAt()) StepDown(WhoIsMissing(now_));
}

void Witness::Settle() {
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

void Witness::Decide() {
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

bool Witness::ChangeMembers() {
  if (!leading_->confirmed()) return false;
  MembersVerdict verdict = DecideMembers(leading_->View(*entry_, known_, now_));
  if (!verdict.members) return false;
  out_.news.push_back(verdict.reason);
  Replace(*std::move(verdict.members), entry_->record, entry_->version);
  return true;
}

void Witness::Replace(WitnessMembers members, std::string record, uint64_t version) {
  leading_->Propose(members, *entry_, now_);
  entry_ = std::make_shared<WitnessEntry>(WitnessEntry{
      {term_, entry_->ballot.index + 1}, version, std::move(members), std::move(record)});
  Append();
}

void Witness::Append() {
  const uint64_t beat = leading_->NextBeat(now_);
  for (const WitnessMember& member : leading_->Listeners(*entry_, known_, beat)) {
    const Incarnation to = member.incarnation;
    if (known_.IsDead(to)) continue;
    WitnessMessage append = To(to, Kind::kAppend);
    append.beat = beat;
    append.confirmed = leading_->LastBeat(to);
    if (leading_->Needs(to, *entry_, now_)) append.entry = entry_;
    out_.send.push_back(std::move(append));
  }
}

Instant Witness::NextInstant() const {
  if (leading_) return std::min(leading_->OverAt(), leading_->next_beat());
  return MayLead() ? election_at_ : Instant::max();
}

std::string Witness::Waits(Instant now) const {
  if (!is_member() || (leading_ && leading_->decided() == entry_)) return "";
  return WhoIsMissing(now);
}

std::string Witness::WhoIsMissing(Instant now) const {
  std::vector<Incarnation> missing;
  for (const WitnessMember& member : entry_->members) {
    const Incarnation incarnation = member.incarnation;
    if (incarnation == self_.incarnation) continue;
    if (leading_ && leading_->HeardOfLate(incarnation, now)) continue;
    missing.push_back(incarnation);
  }
  const int members = static_cast<int>(entry_->members.size());
  std::string words = absl::StrCat(
      self_.name, " waits for ", missing.empty() ? "an answer" : NamesOf(entry_->members, missing),
      ": ", Majority(members), " of ", members, " witnesses must agree");
  if (members == 2) {
    absl::StrAppend(&words,
                    "; one of two cannot tell whether the other one is dead, so it goes on ",
                    "by proof of its death, or with --on-host-loss continue");
  }
  return words;
}

}  // namespace hlaunch
