// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/job_rendezvous.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/mutex.h"
#include "proto/base/rare_log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/ids.h"
#include "rendezvous/job/node_questions.h"
#include "rendezvous/round/table/round_table.h"
#include "rendezvous/round/values/lease.h"

namespace hlaunch {
namespace {

// What a session must still be told. It says *that* there is news: the directive is made when it is
// handed over, so the latest always wins.
struct Outbox {
  std::string node_id;
  Incarnation incarnation = 0;
  // Shared with the stream or client that attached it; held for as long as news may come.
  std::shared_ptr<JobRendezvous::Session> session;
  bool news = false;
  bool probe = false;
  std::deque<NodeQuestion> questions;
  std::map<int, RoundWord> words;  // By the node rank of who said it.
  std::optional<absl::Status> end;
  bool detached = false;
  bool busy = false;  // A thread is inside the session.

  bool HasMore() const { return news || end || !questions.empty() || !words.empty(); }
};

// The nodes of a round, by node rank; an empty id: it is not here.
struct RoundNodes {
  Round round = 0;
  std::vector<std::string> ids;
  std::map<std::string, int, std::less<>> ranks;
};

// The pause before a record that could not be kept is tried again.
constexpr Duration kCommitAgain = std::chrono::seconds(1);

// Returns whether a node with the `nproc` ranks from `first` on has one of `wanted`; an empty
// `wanted` means all ranks.
bool HasOne(const std::vector<Rank>& wanted, Rank first, int nproc) {
  if (wanted.empty()) return true;
  const auto next = std::lower_bound(wanted.begin(), wanted.end(), first);
  return next != wanted.end() && *next < first + nproc;
}

// Returns those members of a round that have one of the `wanted` ranks.
std::vector<NodeQuestions::Candidate> CandidatesOf(const std::vector<const Seat*>& members,
                                                   const std::vector<Rank>& wanted) {
  std::vector<NodeQuestions::Candidate> nodes;
  for (const Seat* seat : members) {
    const NodeInfo& info = seat->info;
    if (!HasOne(wanted, seat->first_rank, info.nproc)) continue;
    NodeWord word{info.host, seat->node_rank, seat->first_rank, info.nproc, "", ""};
    if (!info.answers) {
      word.problem = "has an older hlaunch, which cannot be asked";
    } else if (!seat->attached && !seat->local) {
      word.problem = "has no connection to the rendezvous";
    }
    nodes.push_back({info.node_id, std::move(word)});
  }
  return nodes;
}

JobRules Completed(JobRules rules) {
  if (!rules.make_secret) rules.make_secret = NewSecret;
  rules.policy.lease =
      LeaseForNodes(rules.policy.lease, rules.policy.max_nodes + rules.policy.spares);
  return rules;
}

}  // namespace

struct JobRendezvous::State {
  State(JobRules the_rules, const Clock& the_clock, JobThreads given)
      : rules(Completed(std::move(the_rules))),
        clock(the_clock),
        own_threads(the_clock, 1),
        threads(given.deadlines != nullptr ? *given.deadlines : own_threads),
        deadline(threads.Add([this] { Ring(); })),
        keeping_threads(given.keeping),
        keeping(keeping_threads == nullptr ? 0 : keeping_threads->Add([this] { KeepAndTell(); })),
        table(rules) {}
  State(JobRules the_rules, const JobRecord& record, const Clock& the_clock, JobThreads given)
      : rules(Completed(std::move(the_rules))),
        clock(the_clock),
        own_threads(the_clock, 1),
        threads(given.deadlines != nullptr ? *given.deadlines : own_threads),
        deadline(threads.Add([this] { Ring(); })),
        keeping_threads(given.keeping),
        keeping(keeping_threads == nullptr ? 0 : keeping_threads->Add([this] { KeepAndTell(); })),
        table(rules, record, clock.Now()),
        opened(table.round()),
        committed(table.durable_version()) {}

  const JobRules rules;
  const Clock& clock;
  DeadlineThreads own_threads;  // Idle if the threads are shared.
  DeadlineThreads& threads;
  const DeadlineThreads::Id deadline;
  // Null if the thread that has news to tell keeps the record first.
  DeadlineThreads* const keeping_threads;
  const DeadlineThreads::Id keeping;  // In `keeping_threads`.

  Mutex mu;
  RoundTable table ABSL_GUARDED_BY(mu);
  // Each is shared with the thread that is inside the session.
  std::map<std::string, std::shared_ptr<Outbox>, std::less<>> outboxes ABSL_GUARDED_BY(mu);
  // These have news, questions or an end.
  std::deque<std::shared_ptr<Outbox>> ready ABSL_GUARDED_BY(mu);
  // These are asked for a sign of life even while everything else must wait, because a node that
  // does not answer loses its place.
  std::deque<std::shared_ptr<Outbox>> probed ABSL_GUARDED_BY(mu);
  Round opened ABSL_GUARDED_BY(mu) = 0;        // before_round was called up to this round.
  uint64_t committed ABSL_GUARDED_BY(mu) = 0;  // The durable version that was kept.
  bool halted ABSL_GUARDED_BY(mu) = false;     // A thread opens a round or keeps a record.
  // Set if the record could not be kept: no node is told anything until it is tried again at this
  // time.
  std::optional<Instant> held_until ABSL_GUARDED_BY(mu);
  // Another rendezvous decides for this job: no node is told anything.
  bool lost ABSL_GUARDED_BY(mu) = false;
  bool stop ABSL_GUARDED_BY(mu) = false;
  std::optional<Instant> rings_at ABSL_GUARDED_BY(mu);  // Ring is called at this time.
  std::string no_thread ABSL_GUARDED_BY(mu);            // Why no thread calls Ring; not logged yet.
  RareLog no_thread_lines ABSL_GUARDED_BY(mu);
  CondVar all_finished;
  // An open question: the callback of its caller, and the beginning of the answer.
  struct Asker {
    JobAnswer head;
    AskDone done;
  };
  std::map<uint64_t, Asker> askers ABSL_GUARDED_BY(mu);
  NodeQuestions questions ABSL_GUARDED_BY(mu);
  RoundNodes nodes ABSL_GUARDED_BY(mu);  // As far as words were said in the latest round.
  std::deque<std::pair<uint64_t, std::vector<NodeWord>>> answered ABSL_GUARDED_BY(mu);

  void End(const std::shared_ptr<Outbox>& outbox, absl::Status status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void CollectLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void CollectQuestionsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void TellAskerLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void LearnNodesLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void PassOnLocked(absl::string_view node_id, RoundWord word) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool StandsByLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  std::optional<Instant> NextDeadlineLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void SetDeadlineLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  absl::Status CheckLeadsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool UnkeptLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  bool MustOpenLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void OpenRoundLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void CommitLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void HaveItKeptLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void ProbeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void DeliverLocked(const std::shared_ptr<Outbox>& outbox) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  void Ring() ABSL_LOCKS_EXCLUDED(mu);
  void KeepAndTell() ABSL_LOCKS_EXCLUDED(mu);
};

void JobRendezvous::State::End(const std::shared_ptr<Outbox>& outbox, absl::Status status) {
  outbox->end = std::move(status);
  ready.push_back(outbox);
}

// Moves what the table decided into the outboxes. Called after every call that may change the
// table.
void JobRendezvous::State::CollectLocked() {
  for (RoundTable::Ended& ended : table.TakeEnded()) {
    const auto it = outboxes.find(ended.node_id);
    if (it == outboxes.end() || it->second->incarnation != ended.incarnation) continue;
    questions.Gone(ended.node_id, "has left the job");
    End(it->second, std::move(ended.status));
    outboxes.erase(it);
  }
  for (const std::string& node_id : table.TakeChanged()) {
    const auto it = outboxes.find(node_id);
    if (it == outboxes.end() || it->second->news) continue;
    it->second->news = true;
    ready.push_back(it->second);
  }
  for (const std::string& node_id : table.TakeAsked()) {
    const auto it = outboxes.find(node_id);
    if (it == outboxes.end()) continue;
    it->second->probe = true;
    probed.push_back(it->second);
  }
  CollectQuestionsLocked();
  SetDeadlineLocked();
  if (table.AllFinished()) all_finished.SignalAll();
}

void JobRendezvous::State::CollectQuestionsLocked() {
  for (auto& [node_id, question] : questions.TakeTold()) {
    const auto it = outboxes.find(node_id);
    if (it == outboxes.end()) continue;
    it->second->questions.push_back(std::move(question));
    ready.push_back(it->second);
  }
  for (auto& finished : questions.TakeFinished()) answered.push_back(std::move(finished));
}

// While a record waits to be kept by other threads the table stands by. So no node is given up for
// not answering what it was not told, and one that is silent is given up as soon as the record is
// kept.
bool JobRendezvous::State::StandsByLocked() { return keeping_threads != nullptr && UnkeptLocked(); }

std::optional<Instant> JobRendezvous::State::NextDeadlineLocked() {
  std::optional<Instant> first;
  std::optional<Instant> of_table = table.NextDeadline();
  if (of_table && StandsByLocked()) of_table = table.NextStandBy();
  for (const auto& one : {of_table, questions.NextDeadline(), held_until}) {
    if (one && (!first || *one < *first)) first = one;
  }
  return first;
}

// Without a thread no node is lost and no wait ends by itself, so each call of a node tries again.
void JobRendezvous::State::SetDeadlineLocked() {
  const std::optional<Instant> next = NextDeadlineLocked();
  if (!next || stop || lost || (rings_at && *rings_at <= *next)) return;
  const absl::Status set = threads.Set(deadline, *next);
  if (set.ok()) {
    rings_at = next;
  } else {
    no_thread = no_thread_lines.Admit(
        absl::StrCat("job ", rules.job_id, ": ", set.message(), "; trying again"), clock.Now());
  }
}

// A deadline has come.
void JobRendezvous::State::Ring() {
  MutexLock lock(&mu);
  rings_at.reset();
  const std::optional<Instant> next = NextDeadlineLocked();
  if (!CheckLeadsLocked().ok()) return;
  if (next && *next <= clock.Now() && !stop) {
    if (held_until && *held_until <= clock.Now()) held_until.reset();
    const std::optional<Instant> due = table.NextDeadline();
    if (StandsByLocked()) {
      if (table.NextStandBy() <= clock.Now()) table.StandBy(clock.Now());
    } else if (due && *due <= clock.Now()) {
      table.Tick(clock.Now());
    }
    questions.Tick(clock.Now());
    CollectLocked();
    FlushLocked();
  } else {
    SetDeadlineLocked();  // The deadline was put off.
  }
}

// Once it does not lead, it never does again.
absl::Status JobRendezvous::State::CheckLeadsLocked() {
  lost = lost || (rules.leads && !rules.leads());
  if (!lost) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("this service does not lead any more, and decides nothing for job ",
                   rules.job_id, "; another one takes over"));
}

bool JobRendezvous::State::UnkeptLocked() {
  return rules.commit && table.durable_version() != committed;
}

bool JobRendezvous::State::MustOpenLocked() {
  const bool proposed =
      table.state() == JobState::kPreflight || table.state() == JobState::kRunning;
  return rules.before_round && proposed && table.round() > opened;
}

// All others wait while one thread opens the round: no node hears of the round before.
void JobRendezvous::State::OpenRoundLocked() {
  const Round round = table.round();
  const Assignment first = table.FirstAssignment();
  halted = true;
  mu.Unlock();
  rules.before_round(first);
  mu.Lock();
  halted = false;
  opened = round;
}

// The same, for decisions that must not be told before they are kept.
void JobRendezvous::State::CommitLocked() {
  const uint64_t version = table.durable_version();
  const JobRecord record = table.Record();
  halted = true;
  mu.Unlock();
  const absl::Status kept = rules.commit(record);
  mu.Lock();
  halted = false;
  if (kept.ok()) {
    committed = version;
  } else if (absl::IsAborted(kept)) {
    lost = true;
  } else {
    held_until = clock.Now() + kCommitAgain;
  }
  SetDeadlineLocked();
}

// The place of the records may not respond for seconds, and this thread may be needed to answer
// other nodes.
void JobRendezvous::State::HaveItKeptLocked() {
  halted = true;
  // Those threads were started before there was a job.
  keeping_threads->Set(keeping, clock.Now()).IgnoreError();
}

void JobRendezvous::State::KeepAndTell() {
  MutexLock lock(&mu);
  halted = false;
  if (stop || !CheckLeadsLocked().ok()) return;
  if (UnkeptLocked()) CommitLocked();
  FlushLocked();
}

void JobRendezvous::State::DeliverLocked(const std::shared_ptr<Outbox>& outbox) {
  if (outbox->busy || outbox->detached) return;  // If busy, the thread inside delivers it.
  outbox->busy = true;
  if (outbox->end) {
    const absl::Status status = *std::exchange(outbox->end, std::nullopt);
    const auto session = std::exchange(outbox->session, nullptr);
    outbox->detached = true;
    mu.Unlock();
    session->OnEnd(status);
    mu.Lock();
  } else if (!outbox->questions.empty()) {
    const NodeQuestion question = std::move(outbox->questions.front());
    outbox->questions.pop_front();
    const auto session = outbox->session;
    mu.Unlock();
    session->OnQuestion(question);
    mu.Lock();
  } else if (std::exchange(outbox->news, false)) {
    const Directive directive = table.DirectiveFor(outbox->node_id);
    const auto session = outbox->session;
    mu.Unlock();
    session->OnDirective(directive);
    mu.Lock();
  } else if (!outbox->words.empty()) {
    const RoundWord word = std::move(outbox->words.extract(outbox->words.begin()).mapped());
    const auto session = outbox->session;
    mu.Unlock();
    session->OnWord(word);
    mu.Lock();
  }
  outbox->busy = false;
  if (outbox->probe) probed.push_back(outbox);
  if (outbox->HasMore()) ready.push_back(outbox);
}

void JobRendezvous::State::ProbeLocked() {
  const std::shared_ptr<Outbox> outbox = std::move(probed.front());
  probed.pop_front();
  if (outbox->busy || outbox->detached || !std::exchange(outbox->probe, false)) return;
  outbox->busy = true;
  const auto session = outbox->session;
  mu.Unlock();
  session->OnProbe();
  mu.Lock();
  outbox->busy = false;
  if (outbox->probe) probed.push_back(outbox);
  if (outbox->HasMore()) ready.push_back(outbox);
}

void JobRendezvous::State::TellAskerLocked() {
  auto [number, words] = std::move(answered.front());
  answered.pop_front();
  auto asker = askers.extract(number);
  if (asker.empty()) return;
  asker.mapped().head.nodes = std::move(words);
  mu.Unlock();
  asker.mapped().done(std::move(asker.mapped().head));
  mu.Lock();
}

// Hands over everything there is. Drops the lock for every call that leaves this file, so a callee
// may call back, and other threads may deliver to other sessions meanwhile.
void JobRendezvous::State::FlushLocked() {
  while (CheckLeadsLocked().ok()) {
    if (!probed.empty()) {
      ProbeLocked();
    } else if (halted) {
      return;
    } else if (!no_thread.empty()) {
      const std::string line = std::exchange(no_thread, {});
      mu.Unlock();
      LogError(line);
      mu.Lock();
    } else if (held_until) {
      return;
    } else if (UnkeptLocked() && keeping_threads != nullptr) {
      HaveItKeptLocked();
    } else if (UnkeptLocked()) {
      CommitLocked();
    } else if (MustOpenLocked()) {
      OpenRoundLocked();
    } else if (!answered.empty()) {
      TellAskerLocked();
    } else if (!ready.empty()) {
      const std::shared_ptr<Outbox> outbox = std::move(ready.front());
      ready.pop_front();
      DeliverLocked(outbox);
    } else {
      return;
    }
  }
}

JobRendezvous::JobRendezvous(JobRules rules, const Clock& clock, JobThreads threads)
    : state_(std::make_unique<State>(std::move(rules), clock, threads)) {}

JobRendezvous::JobRendezvous(JobRules rules, const JobRecord& record, const Clock& clock,
                             JobThreads threads)
    : state_(std::make_unique<State>(std::move(rules), record, clock, threads)) {
  MutexLock lock(&state_->mu);
  state_->SetDeadlineLocked();
}

JobRendezvous::~JobRendezvous() {
  {
    MutexLock lock(&state_->mu);
    state_->stop = true;
  }
  state_->threads.Remove(state_->deadline);
  if (state_->keeping_threads != nullptr) state_->keeping_threads->Remove(state_->keeping);
}

absl::Status JobRendezvous::Attach(const NodeInfo& info, const NodeUpdate& update, bool local,
                                   std::shared_ptr<Session> session) {
  MutexLock lock(&state_->mu);
  HLAUNCH_RETURN_IF_ERROR(state_->CheckLeadsLocked());
  const absl::Status status = state_->table.Join(info, update, local, state_->clock.Now());
  if (status.ok()) {
    auto outbox = std::make_shared<Outbox>();
    outbox->node_id = info.node_id;
    outbox->incarnation = info.incarnation;
    outbox->session = std::move(session);
    std::shared_ptr<Outbox>& place = state_->outboxes[info.node_id];
    if (place != nullptr) {
      state_->End(place, absl::UnavailableError("another connection of this node took its place"));
    }
    place = std::move(outbox);
  }
  state_->CollectLocked();
  state_->FlushLocked();
  return status;
}

bool JobRendezvous::Counts(absl::string_view node_id, Incarnation incarnation, Duration age) {
  MutexLock lock(&state_->mu);
  const bool counts = state_->table.Counts(node_id, incarnation, age, state_->clock.Now());
  state_->CollectLocked();
  state_->FlushLocked();
  return counts;
}

absl::Status JobRendezvous::Update(absl::string_view node_id, Incarnation incarnation,
                                   const NodeUpdate& update, bool counts) {
  MutexLock lock(&state_->mu);
  HLAUNCH_RETURN_IF_ERROR(state_->CheckLeadsLocked());
  const absl::Status status =
      state_->table.Update(node_id, incarnation, update, state_->clock.Now(), counts);
  state_->CollectLocked();
  state_->FlushLocked();
  return status;
}

bool JobRendezvous::Heard(absl::string_view node_id, Incarnation incarnation) {
  MutexLock lock(&state_->mu);
  state_->table.Heard(node_id, incarnation, state_->clock.Now());
  const bool holds = state_->table.Holds(node_id, incarnation);
  state_->CollectLocked();
  state_->FlushLocked();
  return holds;
}

bool JobRendezvous::HeardFromVoter(absl::string_view node_id, Incarnation incarnation) {
  MutexLock lock(&state_->mu);
  if (!state_->CheckLeadsLocked().ok()) return false;
  const bool counts = state_->table.HeardFromVoter(node_id, incarnation, state_->clock.Now());
  state_->CollectLocked();
  state_->FlushLocked();
  return counts;
}

void JobRendezvous::Detach(absl::string_view node_id, const Session* session) {
  std::shared_ptr<Session> let_go;  // Destroyed outside the lock.
  MutexLock lock(&state_->mu);
  const auto it = state_->outboxes.find(node_id);
  if (it == state_->outboxes.end() || it->second->session.get() != session) return;
  const std::shared_ptr<Outbox> outbox = std::move(it->second);
  state_->outboxes.erase(it);
  outbox->detached = true;
  let_go = std::move(outbox->session);
  state_->questions.Gone(node_id, "has lost its connection to the rendezvous");
  state_->table.Disconnected(node_id, outbox->incarnation, state_->clock.Now());
  state_->CollectLocked();
  state_->FlushLocked();
}

absl::Status JobRendezvous::ReportNodeDeath(absl::string_view node_id, Incarnation incarnation,
                                            const std::string& reason) {
  MutexLock lock(&state_->mu);
  HLAUNCH_RETURN_IF_ERROR(state_->CheckLeadsLocked());
  const absl::Status status =
      state_->table.NodeDied(node_id, incarnation, reason, state_->clock.Now());
  state_->CollectLocked();
  state_->FlushLocked();
  return status;
}

void JobRendezvous::Expect(int nodes, int ended) {
  MutexLock lock(&state_->mu);
  state_->table.Expect(nodes, ended, state_->clock.Now());
  state_->CollectLocked();
  state_->FlushLocked();
}

void JobRendezvous::End(const Outcome& outcome) {
  MutexLock lock(&state_->mu);
  state_->table.End(outcome, state_->clock.Now());
  state_->CollectLocked();
  state_->FlushLocked();
}

std::vector<std::string> JobRendezvous::AwaitAllFinished(Instant deadline) {
  MutexLock lock(&state_->mu);
  while (!state_->table.AllFinished()) {
    if (!state_->all_finished.WaitUntil(&state_->mu, deadline)) break;
  }
  return state_->table.AllFinished() ? std::vector<std::string>() : state_->table.Unfinished();
}

JobStatus JobRendezvous::Status() const {
  MutexLock lock(&state_->mu);
  return state_->table.Status(state_->clock.Now(), WallMillis());
}

absl::Status JobRendezvous::CheckLeads() const {
  MutexLock lock(&state_->mu);
  return state_->CheckLeadsLocked();
}

bool JobRendezvous::Done() const {
  MutexLock lock(&state_->mu);
  if (state_->UnkeptLocked() && !state_->lost) return false;
  return state_->table.AllFinished() || state_->table.Deserted();
}

JobState JobRendezvous::state() const {
  MutexLock lock(&state_->mu);
  return state_->table.state();
}

bool JobRendezvous::Holds(absl::string_view node_id, Incarnation incarnation) const {
  MutexLock lock(&state_->mu);
  return state_->table.Holds(node_id, incarnation);
}

absl::StatusOr<uint64_t> JobRendezvous::Ask(const RankQuestion& question, AskDone done) {
  State& s = *state_;
  MutexLock lock(&s.mu);
  HLAUNCH_RETURN_IF_ERROR(s.CheckLeadsLocked());
  const Instant now = s.clock.Now();
  JobAnswer head;
  head.round = s.table.round();
  head.explanation = s.table.Explain(now);
  std::vector<NodeQuestions::Candidate> nodes;
  if (s.table.state() == JobState::kRunning) {
    head.world_size = s.table.world_size();
    nodes = CandidatesOf(s.table.Members(), question.ranks);
  }
  const absl::StatusOr<uint64_t> number = s.questions.Begin(question, std::move(nodes), now);
  if (number.ok()) s.askers[*number] = {std::move(head), std::move(done)};
  s.CollectLocked();
  s.FlushLocked();
  return number;
}

size_t JobRendezvous::open_questions() const {
  MutexLock lock(&state_->mu);
  return state_->askers.size();
}

bool JobRendezvous::GiveUp(uint64_t number) {
  MutexLock lock(&state_->mu);
  state_->questions.GiveUp(number);
  return state_->askers.erase(number) > 0;
}

bool JobRendezvous::Answer(absl::string_view node_id, Incarnation incarnation, NodeAnswer answer,
                           bool counts) {
  MutexLock lock(&state_->mu);
  if (!state_->table.Holds(node_id, incarnation)) return false;
  if (counts) state_->table.Heard(node_id, incarnation, state_->clock.Now());
  state_->questions.Answer(node_id, std::move(answer));
  state_->CollectLocked();
  state_->FlushLocked();
  return true;
}

// O(n), once for each round and each node that comes back to it.
void JobRendezvous::State::LearnNodesLocked() {
  nodes = {table.round(), {}, {}};
  for (const Seat* seat : table.Members()) {
    const auto at = static_cast<size_t>(seat->node_rank);
    if (at >= nodes.ids.size()) nodes.ids.resize(at + 1);
    nodes.ids[at] = seat->info.node_id;
    nodes.ranks[seat->info.node_id] = seat->node_rank;
  }
}

void JobRendezvous::State::PassOnLocked(absl::string_view node_id, RoundWord word) {
  if (table.state() != JobState::kRunning || word.round != table.round()) return;
  if (nodes.round != word.round || nodes.ranks.count(node_id) == 0) LearnNodesLocked();
  const auto sender = nodes.ranks.find(node_id);
  if (sender == nodes.ranks.end()) return;  // It is a spare.
  word.node_rank = sender->second;
  const auto put = [&](const std::string& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const auto outbox = outboxes.find(to);
    if (outbox == outboxes.end()) return;
    outbox->second->words[word.node_rank] = word;
    ready.push_back(outbox->second);
  };
  if (word.node_rank != 0) return put(nodes.ids[0]);
  for (size_t i = 1; i < nodes.ids.size(); ++i) put(nodes.ids[i]);
}

bool JobRendezvous::Tell(absl::string_view node_id, Incarnation incarnation, RoundWord word,
                         bool counts) {
  MutexLock lock(&state_->mu);
  if (!state_->table.Holds(node_id, incarnation)) return false;
  if (counts) state_->table.Heard(node_id, incarnation, state_->clock.Now());
  state_->PassOnLocked(node_id, std::move(word));
  state_->CollectLocked();
  state_->FlushLocked();
  return true;
}

std::vector<NodeInfo> JobRendezvous::Nodes() const {
  MutexLock lock(&state_->mu);
  return state_->table.Nodes();
}

absl::StatusOr<std::string> JobRendezvous::Drain(const DrainRequest& request) {
  MutexLock lock(&state_->mu);
  HLAUNCH_RETURN_IF_ERROR(state_->CheckLeadsLocked());
  absl::StatusOr<std::string> follows = state_->table.Drain(request, state_->clock.Now());
  state_->CollectLocked();
  state_->FlushLocked();
  return follows;
}

void JobRendezvous::Say(const std::string& text) {
  MutexLock lock(&state_->mu);
  state_->table.Say(text);
  state_->CollectLocked();
  state_->FlushLocked();
}

const JobPolicy& JobRendezvous::policy() const { return state_->rules.policy; }

}  // namespace hlaunch
