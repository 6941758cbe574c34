// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/voters/job_voter.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/now.h"
#include "proto/base/status_macros.h"
#include "proto/contract/ids.h"
#include "rendezvous/failover/etcd/packed_record.h"
#include "rendezvous/round/values/lease.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {
namespace {

// Without what Slim leaves out, their record has less than kMaxVoterRecordBytes even if their
// names are as long as they may be and do not compress.
constexpr int kMostNodes = 1 << 14;
constexpr size_t kMostWithTexts = 240 << 10;  // A larger record is without texts for people.
constexpr size_t kMostHeard = 64;
constexpr size_t kMostSigns = 64;  // Of life, whose answer has not come.
constexpr Duration kLook = std::chrono::milliseconds(500);
constexpr Duration kKeepPatience = std::chrono::seconds(3);
constexpr Duration kQuickPreflight = std::chrono::seconds(1);
// A candidate becomes a voter within a second or two.
constexpr Duration kAlone = std::chrono::seconds(10);

// Returns the record without texts that are only for people, which are most of a large record, and
// without addresses that nodes tell again.
JobRecord Slim(JobRecord record) {
  for (std::vector<WorkerFailure>* failures : {&record.failures, &record.outcome.failures}) {
    for (WorkerFailure& failure : *failures) {
      failure.log_tail.clear();
      failure.traceback.clear();
    }
  }
  for (MemberRecord& member : record.members) member.info.other_addresses.clear();
  for (DrainedNode& node : record.drained) node.reason.clear();
  return record;
}

// Returns where `self` reaches this node as a voter; unset if the node is none.
std::optional<VoterMember> AsVoter(const NodeInfo& node, const VoterMember& self) {
  std::string address = node.seen_address.empty() ? node.address : node.seen_address;
  if (IsLoopback(address)) address = SplitAddress(self.address).literal;  // It is on this host.
  const bool other = node.voter_port != 0 && node.incarnation != self.incarnation;
  if (!other || !IsAddressLiteral(address)) return std::nullopt;
  return VoterMember{node.incarnation, node.host, HostPort(address, node.voter_port)};
}

// Returns the members of the last round.
std::vector<NodeInfo> NodesByRank(const JobRecord& record) {
  std::vector<const MemberRecord*> members;
  for (const MemberRecord& member : record.members) {
    if (member.told == record.round) members.push_back(&member);
  }
  std::sort(members.begin(), members.end(), [](const MemberRecord* a, const MemberRecord* b) {
    return a->node_rank < b->node_rank;
  });
  std::vector<NodeInfo> nodes;
  for (const MemberRecord* member : members) nodes.push_back(member->info);
  return nodes;
}

}  // namespace

VoterCandidates CandidatesOf(const std::vector<NodeInfo>& nodes, const VoterMembers& members,
                             const VoterMember& self) {
  VoterCandidates told;
  told.nodes = static_cast<int>(std::max<size_t>(nodes.size(), 1));
  for (const NodeInfo& node : nodes) {
    if (const auto one = AsVoter(node, self)) told.candidates.push_back(*one);
  }
  const std::string here = SplitAddress(self.address).literal;
  const auto order = [&](const VoterMember& one) {
    if (FindMember(members, one.incarnation) != nullptr) return 0;
    return SplitAddress(one.address).literal != here ? 1 : 2;
  };
  std::stable_sort(told.candidates.begin(), told.candidates.end(),
                   [&](const VoterMember& a, const VoterMember& b) { return order(a) < order(b); });
  if (told.candidates.size() > kMaxVoters) told.candidates.resize(kMaxVoters);
  return told;
}

std::string PackForVoters(const JobRecord& record) {
  std::string packed = PackRecord(record);
  return packed.size() <= kMostWithTexts ? packed : PackRecord(Slim(record));
}

bool HasVoters(const JobPolicy& policy) {
  return policy.on_host_loss != HostLoss::kEnd && policy.max_nodes > 1 &&
         policy.max_nodes + policy.spares <= kMostNodes;
}

VoterRule VoterRuleOf(const JobPolicy& policy) {
  VoterRule rule;
  // The lease that agents are told: for the leader and for voters that have promised not to
  // vote, it must mean the same time.
  rule.lease = LeaseForNodes(policy.lease, policy.max_nodes + policy.spares).lease;
  rule.beat = std::min<Duration>(kLook, rule.lease / 5);
  // Of two nodes the other one goes on by proof within this time only. The keeper of a leader that
  // stands still brings it, see HostPatience. No third process could take the place meanwhile.
  const bool pair = policy.max_nodes + policy.spares <= 2;
  rule.lapse_after = pair ? policy.lease.loss_limit : policy.lease.loss_limit / 2;
  rule.continue_after = policy.lease.loss_limit * 2 / 3;
  if (policy.on_host_loss == HostLoss::kContinue) rule.on_host_loss = OnHostLoss::kContinue;
  return rule;
}

Duration HostPatience(const JobPolicy& policy, size_t voters) {
  constexpr Duration kLeast = std::chrono::seconds(3);  // The loop of a busy host may be late.
  if (voters != 2 || policy.max_nodes + policy.spares > 2) return Duration::max();
  return std::max(kLeast, VoterRuleOf(policy).lapse_after / 2);
}

Duration JobVoter::Patience() const {
  if (!leads()) return Duration::max();
  return HostPatience(options_.policy, voter()->group().members.size());
}

JobVoter::JobVoter(Options options)
    : options_(std::move(options)), keeping_(MonotonicClock(), 1), sender_(options_.trust) {}

absl::StatusOr<std::unique_ptr<JobVoter>> JobVoter::Start(Options options) {
  std::unique_ptr<JobVoter> voter(new JobVoter(std::move(options)));
  HLAUNCH_RETURN_IF_ERROR(voter->Begin());
  HLAUNCH_RETURN_IF_ERROR(voter->keeping_.Start());
  try {
    voter->watch_ = std::thread([raw = voter.get()] {
      ::pthread_setname_np(::pthread_self(), "hl-voters");
      raw->Watch();
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for the voters: ", error.code().message()));
  }
  return voter;
}

absl::Status JobVoter::Begin() {
  VoterThread::Options options;
  options.self = options_.self;
  options.rule = VoterRuleOf(options_.policy);
  options.clock = &clock_;
  options.random = NewIncarnation;
  options.send = [this](const VoterMessage& message) { Send(message); };
  options.leads = [this](Term term, const VoterEntry& entry) { TakeOver(term, entry); };
  options.lost = [this](const std::string& why) { Lose(why); };
  options.news = [this](const std::string& line) {
    LogDebug(line);
    MutexLock lock(&mu_);
    why_ = line;
  };
  options.answered = [this](Incarnation from, Term term, uint64_t beat) {
    Answered(from, term, beat);
  };
  options.led_by = [this](Incarnation leader) {
    VoterMembers places = Places();
    const bool alone = places.empty() && leader == options_.self.incarnation;
    if (alone) places = {options_.self};  // Its own agent may be at a place that is gone.
    if (options_.on_led && !places.empty()) options_.on_led(places);
  };
  HLAUNCH_ASSIGN_OR_RETURN(std::shared_ptr<VoterThread> begun,
                           VoterThread::Start(std::move(options)));
  MutexLock lock(&mu_);
  std::swap(voter_, begun);
  return absl::OkStatus();
}

JobVoter::~JobVoter() {
  {
    MutexLock lock(&mu_);
    stop_ = true;
    stopped_.SignalAll();
  }
  if (watch_.joinable()) watch_.join();  // Until then it may begin another voter.
  const std::shared_ptr<VoterThread> voter = this->voter();
  if (voter != nullptr) voter->End();  // Until then its thread calls this object.
  std::vector<std::shared_ptr<JobRendezvous>> jobs;
  {
    MutexLock lock(&mu_);
    jobs = std::move(former_);
    jobs.push_back(std::move(job_));
  }
  jobs.clear();  // Until then they ask whether the voter leads.
}

std::shared_ptr<VoterThread> JobVoter::voter() const {
  MutexLock lock(&mu_);
  return voter_;
}

JobRendezvous& JobVoter::Found(JobRules rules) {
  const Term term = 1;
  {
    MutexLock lock(&mu_);
    founds_ = true;  // Before the voter leads.
    rules_ = rules;
  }
  voter()->Give(VoterFounded{});
  {
    MutexLock lock(&mu_);
    while (!leads_) stopped_.Wait(&mu_);
  }
  auto job = std::make_shared<JobRendezvous>(Rules(std::move(rules), term, 1), MonotonicClock(),
                                             JobThreads{nullptr, &keeping_});
  MutexLock lock(&mu_);
  job_ = std::move(job);
  return *job_;
}

JobRules JobVoter::Rules(JobRules rules, Term term, uint64_t version) {
  auto kept = std::make_shared<Kept>();
  kept->term = term;
  kept->version = version;
  rules.commit = [this, kept](const JobRecord& record) { return Keep(kept, record); };
  rules.leads = [this, kept] { return Leads(*kept); };
  return rules;
}

absl::Status JobVoter::Keep(const std::shared_ptr<Kept>& kept, const JobRecord& record) {
  if (kept->over) return absl::OkStatus();
  const absl::StatusOr<uint64_t> version =
      voter()->Keep(kept->term, PackForVoters(record), kept->version, Now() + kKeepPatience);
  if (!version.ok()) {
    if (absl::IsAborted(version.status())) return version.status();
    LogWarning(absl::StrCat("the job runs on, and what follows for it waits: ",
                            version.status().message()));
    return version.status();
  }
  kept->version = *version;
  kept->over = record.state == JobState::kOver;
  if (record.state != JobState::kRunning) return absl::OkStatus();
  // What tells the nodes to run also tells them the first voters: see Places.
  const VoterMembers members = voter()->group().members;
  if (members.size() < 2) {
    NameCandidates(CandidatesOf(NodesByRank(record), members, options_.self));
  }
  MutexLock lock(&mu_);
  look_ = true;
  stopped_.SignalAll();
  return absl::OkStatus();
}

bool JobVoter::Leads(const Kept& kept) const {
  std::shared_ptr<VoterThread> voter;
  {
    MutexLock lock(&mu_);
    if (kept.over) return true;
    if (!leads_ || term_ != kept.term) return false;
    voter = voter_;
  }
  return voter->LeadsUntil() > Now();
}

void JobVoter::TakeOver(Term term, const VoterEntry& entry) {
  std::string news;
  {
    MutexLock lock(&mu_);
    term_ = term;
    if (founds_ && job_ == nullptr) {
      leads_ = true;
      stopped_.SignalAll();
      return;
    }
    news = absl::StrCat(leader_ ? leader_->name : "the node",
                        ", which held the rendezvous, does not answer; ", options_.self.name,
                        " leads it since: ", why_);
  }
  absl::StatusOr<JobRecord> record = UnpackRecord(entry.record);
  if (!record.ok()) {
    return LogError(absl::StrCat("this node is to lead the rendezvous and cannot: the record of ",
                                 "the job is damaged: ", record.status().message()));
  }
  JobRules rules;
  rules.job_id = options_.job_id;
  rules.policy = record->policy;
  rules.set_by = "the host of the rendezvous";
  auto job = std::make_shared<JobRendezvous>(Rules(std::move(rules), term, entry.version), *record,
                                             MonotonicClock(), JobThreads{nullptr, &keeping_});
  {
    MutexLock lock(&mu_);
    leads_ = true;
    if (job_ != nullptr) former_.push_back(std::move(job_));
    job_ = job;
  }
  LearnNodes(job->Nodes());
  job->Say(news);
}

void JobVoter::LearnNodes(const std::vector<NodeInfo>& nodes) {
  const VoterMembers members = voter()->group().members;
  MutexLock lock(&mu_);
  node_ids_.clear();
  for (const NodeInfo& node : nodes) {
    const bool answers = node.incarnation == options_.self.incarnation ||
                         FindMember(members, node.incarnation) != nullptr ||
                         FindMember(candidates_, node.incarnation) != nullptr;
    if (answers) node_ids_.emplace(node.incarnation, node.node_id);
  }
  for (auto it = taken_.begin(); it != taken_.end();) {
    it = node_ids_.contains(it->first) ? std::next(it) : taken_.erase(it);
  }
}

// The node of `from` has given a sign of life. Returns whether the rendezvous, if it is here, took
// it, so that the node's workers may live by it.
bool JobVoter::TakeSign(Incarnation from) const {
  std::shared_ptr<JobRendezvous> job;
  std::string node_id;
  {
    MutexLock lock(&mu_);
    const auto known = node_ids_.find(from);
    if (!leads_ || job_ == nullptr || known == node_ids_.end()) return false;
    job = job_;
    node_id = known->second;
  }
  return job->HeardFromVoter(node_id, from);
}

void JobVoter::Answered(Incarnation from, Term term, uint64_t beat) {
  if (!TakeSign(from)) return;
  MutexLock lock(&mu_);
  taken_[from] = {term, beat};
}

// The leader says which answer of this voter was taken.
void JobVoter::NoteTaken(const VoterMessage& append) {
  MutexLock lock(&mu_);
  Instant latest = taken_at_;
  std::erase_if(signs_, [&append, &latest](const Sign& sign) {
    const bool taken =
        sign.to == append.from && sign.term == append.term && sign.beat <= append.taken;
    if (taken) latest = std::max(latest, sign.at);
    return taken;
  });
  taken_at_ = latest;
}

Instant JobVoter::TakenAt() const {
  const Instant now = Now();
  if (TakeSign(options_.self.incarnation)) return now;
  MutexLock lock(&mu_);
  return taken_at_;
}

void JobVoter::Lose(const std::string& why) {
  std::shared_ptr<JobRendezvous> job;
  {
    MutexLock lock(&mu_);
    leads_ = false;
    job = job_;
  }
  if (job != nullptr && job->CheckLeads().ok()) return;  // The job is over.
  options_.on_lost(absl::UnavailableError(why));
}

bool JobVoter::leads() const {
  const std::shared_ptr<JobRendezvous> job = this->job();
  return job != nullptr && job->CheckLeads().ok();
}

std::shared_ptr<JobRendezvous> JobVoter::job() const {
  MutexLock lock(&mu_);
  return job_;
}

absl::Status JobVoter::CheckLeads() const {
  if (leads()) return absl::OkStatus();
  const std::string waits = voter()->Waits();
  MutexLock lock(&mu_);
  return absl::UnavailableError(
      absl::StrCat(options_.self.name, " keeps the job's record and does not lead it",
                   !waits.empty() ? absl::StrCat(": ", waits)
                   : leader_      ? absl::StrCat(": the last that did was ", leader_->name)
                                  : ""));
}

absl::StatusOr<std::shared_ptr<JobRendezvous>> JobVoter::Open(const NodeInfo&, const NodeUpdate&) {
  HLAUNCH_RETURN_IF_ERROR(CheckLeads());
  return job();  // The round table refuses a node of another job.
}

std::shared_ptr<JobRendezvous> JobVoter::Find(absl::string_view job_id) {
  return job_id == options_.job_id && leads() ? job() : nullptr;
}

std::optional<JobStatus> JobVoter::Status(absl::string_view job_id) {
  const std::shared_ptr<JobRendezvous> job = Find(job_id);
  if (job == nullptr) return std::nullopt;
  return job->Status();
}

std::vector<JobStatus> JobVoter::List() {
  std::optional<JobStatus> status = Status(options_.job_id);
  if (!status) return {};
  status->nodes.clear();
  return {*std::move(status)};
}

absl::Status JobVoter::Hear(absl::string_view job_id, VoterLetter letter) {
  if (job_id != options_.job_id) return absl::NotFoundError("no voter of that job is here");
  const bool appends = letter.message.kind == VoterMessage::Kind::kAppend;
  {
    MutexLock lock(&mu_);
    if (yielded_) yielded_ = Now();
    // A process that is no voter of the job learns only in this way that another one leads now.
    if (appends && letter.message.to == 0 && !leads_) leader_ = letter.from;
  }
  if (appends && letter.message.to == 0) {
    Yield(letter.from);
    return absl::OkStatus();
  }
  if (letter.message.to != options_.self.incarnation) return absl::OkStatus();
  if (appends && letter.message.taken > 0) NoteTaken(letter.message);
  if (letter.lacks_bytes > 0) {
    AskForRecord(letter);
    // Until the record is there, the message is a sign of life.
    letter.message.entry = nullptr;
  }
  std::shared_ptr<VoterThread> voter;
  {
    MutexLock lock(&mu_);
    if (heard_.size() >= kMostHeard && !heard_.contains(letter.from.incarnation)) heard_.clear();
    heard_[letter.from.incarnation] = letter.from;
    if (appends) leader_ = letter.from;
    voter = voter_;
  }
  voter->Give(VoterHeard{std::move(letter.message)});
  return absl::OkStatus();
}

void JobVoter::AskForRecord(const VoterLetter& letter) {
  const Ballot ballot = letter.message.ballot;
  {
    MutexLock lock(&mu_);
    if (asks_for_) return;  // The leader says again what is still lacking.
    asks_for_ = ballot;
  }
  v1::GetWitnessRecordRequest question;
  question.set_job_id(options_.job_id);
  question.set_from(options_.self.incarnation);
  *question.mutable_ballot() = ToProto(ballot);
  sender_.Ask(
      letter.from, question,
      [this, message = letter.message, bytes = letter.lacks_bytes](
          absl::StatusOr<std::string> record) { TakeRecord(message, std::move(record), bytes); });
}

void JobVoter::TakeRecord(VoterMessage message, absl::StatusOr<std::string> record, size_t bytes) {
  std::shared_ptr<VoterThread> voter;
  {
    MutexLock lock(&mu_);
    asks_for_.reset();
    voter = voter_;
  }
  if (!record.ok() || record->size() != bytes || voter == nullptr) return;
  auto entry = std::make_shared<VoterEntry>(*message.entry);
  entry->record = *std::move(record);
  message.entry = std::move(entry);
  voter->Give(VoterHeard{std::move(message)});
}

absl::StatusOr<std::string> JobVoter::Record(absl::string_view job_id, Incarnation asker,
                                             const Ballot& ballot) {
  if (job_id != options_.job_id) return absl::NotFoundError("no voter of that job is here");
  const VoterMembers members = voter()->group().members;
  MutexLock lock(&mu_);
  if (FindMember(members, asker) == nullptr && FindMember(candidates_, asker) == nullptr) {
    return absl::NotFoundError("who asks is not wanted as a voter");
  }
  if (offered_ == nullptr || offered_->ballot != ballot) {
    return absl::NotFoundError("that entry is not the last one any more");
  }
  return offered_->record;
}

// Another process leads the job that this one has begun again, since this one was started in the
// place of a dead node.
void JobVoter::Yield(const VoterMember& leader) {
  std::shared_ptr<VoterThread> former;
  std::shared_ptr<JobRendezvous> job;
  {
    MutexLock lock(&mu_);
    if (!founds_ || !leads_ || job_ == nullptr) return;
    former = voter_;
    job = job_;
  }
  if (former->group().members.size() > 1 || job->Status().round != 0) return;
  {
    MutexLock lock(&mu_);
    if (!std::exchange(founds_, false)) return;
    leads_ = false;
    leader_ = leader;
    yielded_ = Now();
  }
  former->End();
  if (const absl::Status begun = Begin(); !begun.ok()) LogError(begun.message());
  options_.on_lost(absl::UnavailableError(
      absl::StrCat("the job goes on already: ", leader.name, " leads its rendezvous")));
}

// If nothing was heard of the other job for so long that none of its workers lives, all who led it
// are gone. The nodes that were started again wait here for a rendezvous.
void JobVoter::FoundAgain() {
  const JobPolicy& policy = options_.policy;
  const Lease lease = LeaseForNodes(policy.lease, policy.max_nodes + policy.spares);
  std::shared_ptr<VoterThread> former;
  JobRules rules;
  {
    MutexLock lock(&mu_);
    const Duration silence = lease.loss_limit + lease.margin + lease.lease * 3 / 2;
    if (!yielded_ || Now() - *yielded_ < silence) return;
    yielded_.reset();
    if (!voter_->group().members.empty()) return;  // It is a voter of that job.
    former = voter_;
    rules = rules_;
    if (job_ != nullptr) former_.push_back(std::exchange(job_, nullptr));
  }
  former->End();
  if (const absl::Status begun = Begin(); !begun.ok()) return LogError(begun.message());
  LogWarning(absl::StrCat("the job that went on elsewhere is gone; ", options_.self.name,
                          " begins it anew"));
  Found(std::move(rules));
}

void JobVoter::ProvenDead(absl::string_view job_id, Incarnation incarnation) {
  if (job_id == options_.job_id) voter()->Give(VoterProvenDead{incarnation});
}

VoterMembers JobVoter::Places() const {
  const VoterThread::Group group = voter()->group();
  MutexLock lock(&mu_);
  VoterMembers places = group.members;
  if (leads_) {
    for (const VoterMember& one : candidates_) {
      if (FindMember(places, one.incarnation) == nullptr) places.push_back(one);
    }
  } else if (leader_ && FindMember(places, leader_->incarnation) == nullptr) {
    places.push_back(*leader_);
  }
  if (places.size() < 2 && leads_) return {};  // There is no other place.
  const Incarnation first = group.leader != 0 ? group.leader : (leader_ ? leader_->incarnation : 0);
  std::stable_partition(places.begin(), places.end(),
                        [&](const VoterMember& one) { return one.incarnation == first; });
  if (places.size() > kMaxVotersTold) places.resize(kMaxVotersTold);
  return places;
}

// An answer that is made once more is not the one that was taken, which is the earlier one.
void JobVoter::NoteSign(const Sign& sign) {
  const bool first = sign.term > last_sign_.term && sign.beat > 0;
  const bool next = sign.term == last_sign_.term && sign.beat > last_sign_.beat;
  if (!first && !next) return;
  last_sign_ = sign;
  signs_.push_back(sign);
  if (signs_.size() > kMostSigns) signs_.pop_front();
}

void JobVoter::Send(const VoterMessage& step) {
  VoterMessage message = step;
  {
    MutexLock lock(&mu_);
    if (message.kind == VoterMessage::Kind::kAppended) {
      NoteSign({message.to, message.term, message.beat, Now()});
    } else if (message.kind == VoterMessage::Kind::kAppend) {
      const auto taken = taken_.find(message.to);
      if (taken != taken_.end() && taken->second.first == message.term) {
        message.taken = taken->second.second;
      }
    }
  }
  if (message.entry != nullptr && message.entry->record.size() > kMaxCarriedRecordBytes) {
    MutexLock lock(&mu_);
    offered_ = message.entry;
  }
  if (const std::optional<VoterMember> to = Addressee(message.to)) {
    sender_.Send(*to, ToProto(message, options_.job_id, options_.self));
  }
}

std::optional<VoterMember> JobVoter::Addressee(Incarnation incarnation) const {
  const VoterMembers members = voter()->group().members;
  if (const VoterMember* member = FindMember(members, incarnation)) return *member;
  MutexLock lock(&mu_);
  if (const VoterMember* one = FindMember(candidates_, incarnation)) return *one;
  const auto heard = heard_.find(incarnation);
  if (heard == heard_.end()) return std::nullopt;
  return heard->second;
}

void JobVoter::Watch() {
  while (true) {
    std::shared_ptr<JobRendezvous> job;
    {
      MutexLock lock(&mu_);
      const Instant next = Now() + kLook;
      while (!stop_ && !look_ && Now() < next) stopped_.WaitUntil(&mu_, next);
      if (stop_) return;
      look_ = false;
      if (leads_) job = job_;
    }
    if (job == nullptr) {
      FoundAgain();
      continue;
    }
    TellNodes(*job);
    CallToEndpoint();
  }
}

// Before its first round a job has nothing to lose, and that round should begin soon. So a
// preflight of the usual length is not disturbed either.
void JobVoter::TellNodes(JobRendezvous& job) {
  if (job.state() != JobState::kPreflight) {
    preflight_since_.reset();
  } else if (!preflight_since_) {
    preflight_since_ = Now();
  }
  if (job.Status().round == 0 ||
      (preflight_since_ && Now() - *preflight_since_ < kQuickPreflight)) {
    return;
  }
  const VoterMembers members = voter()->group().members;
  const std::vector<NodeInfo> nodes = job.Nodes();
  VoterCandidates told = CandidatesOf(nodes, members, options_.self);
  SayIfAlone(job, members, told.candidates);
  NameCandidates(std::move(told));
  LearnNodes(nodes);
  VoterMembers places = Places();
  if (SameMembers(places, told_)) return;
  told_ = std::move(places);
  if (options_.on_places) options_.on_places();
}

void JobVoter::NameCandidates(VoterCandidates told) {
  std::shared_ptr<VoterThread> voter;
  {
    MutexLock lock(&mu_);
    candidates_ = told.candidates;
    voter = voter_;
  }
  voter->Give(std::move(told));
}

// If a firewall keeps the voters from each other, the job goes on and nobody would know before
// its host dies.
void JobVoter::SayIfAlone(JobRendezvous& job, const VoterMembers& members,
                          const VoterMembers& candidates) {
  joined_or_said_ = joined_or_said_ || members.size() > 1;
  if (joined_or_said_ || candidates.empty()) return alone_since_.reset();
  if (!alone_since_) alone_since_ = Now();
  if (Now() - *alone_since_ < kAlone) return;
  joined_or_said_ = true;
  const VoterMember& first = candidates.front();
  job.Say(absl::StrCat("the job ends if ", options_.self.name,
                       " dies, as with --on-host-loss end: no other node answers as a voter (",
                       first.name, " at ", first.address, " does not); let a firewall pass TCP ",
                       "between the nodes, or give --on-host-loss end"));
}

// Tells a process that was started there in the place of a dead node that the job goes on.
void JobVoter::CallToEndpoint() {
  if (!options_.endpoint || options_.endpoint->address == options_.self.address) return;
  VoterMessage call;
  call.from = options_.self.incarnation;
  sender_.Send(*options_.endpoint, ToProto(call, options_.job_id, options_.self));
}

}  // namespace hlaunch
