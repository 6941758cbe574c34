// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/failover/voters/voter_sender.h"
#include "rendezvous/job/deadline_threads.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/voter/file/boot_clock.h"
#include "rendezvous/voter/file/voter_thread.h"
#include "rendezvous/voter/voter_rule.h"
#include "rendezvous/voter/wire/voter_post.h"

namespace hlaunch {

// Returns true if a job of this policy has voters. Their record must have a bounded size.
bool HasVoters(const JobPolicy& policy);

// Returns the record as voters keep it. A large one is without texts that are only for people.
// Pure.
std::string PackForVoters(const JobRecord& record);

// Returns the nodes of a job that may be its voters, the best first: those of `members`, which
// are voters, then those on other hosts than `self`. `nodes` are in the order of their ranks,
// with `self` among them. Pure.
VoterCandidates CandidatesOf(const std::vector<NodeInfo>& nodes, const VoterMembers& members,
                             const VoterMember& self);

// Returns the times of the voters of a job of this policy. Pure.
VoterRule VoterRuleOf(const JobPolicy& policy);

// Returns how long a process that leads the job may stand still before its keeper ends it, if the
// job has so many voters. One of two nodes cannot lead without proof that the other one is dead,
// and that must come while its own workers may live, and while it knows that it has missed nothing.
// max(): that is not so. Pure.
Duration HostPatience(const JobPolicy& policy, size_t voters);

// One of the processes that keep a job's record among the job's own agents. The leader of these
// voters runs the job's rendezvous; the others stand by. The server in front of it gets the job
// from it, or learns where the job is.
//
// Its threads are "hl-voter", and "hl-voters", which tells the voter of the job's nodes.
// Thread-safe.
class JobVoter final : public Jobs, public VoterPost {
 public:
  struct Options {
    std::string job_id;
    JobPolicy policy;
    VoterMember self;  // The agent of this process; its address as others reach it.
    Trust trust;
    // Where a node that was started in the first host's place would begin the job again; without an
    // incarnation. Unset if unknown.
    std::optional<VoterMember> endpoint;
    // Called when jobs are not decided here any more; ends what agents have open here. Called from
    // a thread of its own or of the server, with no lock held; must not block.
    std::function<void(const absl::Status& why)> on_lost;
    // Called when Places() has changed while this process leads, from a thread of its own. May be
    // empty.
    std::function<void()> on_places = nullptr;
    // Called when another process leads than before, or this one, with all places of the
    // rendezvous, that one first. Called from a thread of its own; must not block. May be empty.
    std::function<void(const VoterMembers& places)> on_led = nullptr;
  };

  // Begins as a standby.
  //
  // Errors: as VoterThread::Start.
  static absl::StatusOr<std::unique_ptr<JobVoter>> Start(Options options);
  // Requires: the server in front of it is gone, and so is every holder of a job of it.
  ~JobVoter() override;

  // Begins the job here, as the first voter. The job lives as long as this object. To be called
  // once, before anything else.
  JobRendezvous& Found(JobRules rules);

  // Returns true if the job is led from here.
  bool leads() const;
  // Returns true if other processes hold the job's record too, so that one of them can lead the job
  // when this process is gone.
  bool Outlived() const { return voter()->group().members.size() > 1; }
  // As HostPatience, now; max() if the job is not led from here.
  Duration Patience() const;
  // Returns when this process gave the last sign of life that the job's rendezvous took from it as
  // a voter; min() if it took none. Where the rendezvous is in this process, it is one to ask.
  Instant TakenAt() const;
  // Returns the job that is led from here, or was last; null if none ever was.
  std::shared_ptr<JobRendezvous> job() const;

  // Jobs.
  absl::Status CheckLeads() const override;
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo& info,
                                                      const NodeUpdate& update) override;
  std::shared_ptr<JobRendezvous> Find(absl::string_view job_id) override;
  std::optional<JobStatus> Status(absl::string_view job_id) override;
  std::vector<JobStatus> List() override;

  // VoterPost.
  absl::Status Hear(absl::string_view job_id, VoterLetter letter) override;
  absl::StatusOr<std::string> Record(absl::string_view job_id, Incarnation asker,
                                     const Ballot& ballot) override;
  void ProvenDead(absl::string_view job_id, Incarnation incarnation) override;
  VoterMembers Places() const override;

 private:
  // The record as it was kept last, in one term.
  struct Kept {
    Term term = 0;
    uint64_t version = 0;
    // The job is over: nothing follows that others could decide differently.
    std::atomic<bool> over = false;
  };

  explicit JobVoter(Options options);
  absl::Status Begin();
  std::shared_ptr<VoterThread> voter() const;
  JobRules Rules(JobRules rules, Term term, uint64_t version);
  absl::Status Keep(const std::shared_ptr<Kept>& kept, const JobRecord& record);
  void NameCandidates(VoterCandidates told);
  void LearnNodes(const std::vector<NodeInfo>& nodes);
  bool TakeSign(Incarnation from) const;
  void Answered(Incarnation from, Term term, uint64_t beat);
  void NoteTaken(const VoterMessage& append);
  bool Leads(const Kept& kept) const;
  void TakeOver(Term term, const VoterEntry& entry);
  void Lose(const std::string& why);
  void Yield(const VoterMember& leader);
  void FoundAgain();
  void Send(const VoterMessage& step);
  void AskForRecord(const VoterLetter& letter);
  void TakeRecord(VoterMessage message, absl::StatusOr<std::string> record, size_t bytes);
  std::optional<VoterMember> Addressee(Incarnation incarnation) const;
  void Watch();
  void TellNodes(JobRendezvous& job);
  void SayIfAlone(JobRendezvous& job, const VoterMembers& members, const VoterMembers& candidates);
  void CallToEndpoint();

  const Options options_;
  const BootClock clock_;
  DeadlineThreads keeping_;

  mutable Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Shared with calls that other threads make meanwhile.
  std::shared_ptr<VoterThread> voter_ ABSL_GUARDED_BY(mu_);
  bool founds_ ABSL_GUARDED_BY(mu_) = false;  // It founded the group, and has not yielded.
  JobRules rules_ ABSL_GUARDED_BY(mu_);       // Of the job that it founded.
  // It has yielded and is no voter of that job: when it heard of that job last.
  std::optional<Instant> yielded_ ABSL_GUARDED_BY(mu_);
  bool leads_ ABSL_GUARDED_BY(mu_) = false;
  Term term_ ABSL_GUARDED_BY(mu_) = 0;  // The term in which it led last.
  std::shared_ptr<JobRendezvous> job_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<JobRendezvous>> former_ ABSL_GUARDED_BY(mu_);
  std::optional<VoterMember> leader_ ABSL_GUARDED_BY(mu_);  // The leader that was heard last.
  std::string why_ ABSL_GUARDED_BY(mu_);                    // The last line of the voter.
  // Who answers appends is alive; these are the ids of the nodes that may do so, this one included.
  std::map<Incarnation, std::string> node_ids_ ABSL_GUARDED_BY(mu_);
  // Of each voter, in the term in which this one leads: the last beat whose answer was taken.
  std::map<Incarnation, std::pair<Term, uint64_t>> taken_ ABSL_GUARDED_BY(mu_);
  struct Sign {
    Incarnation to = 0;
    Term term = 0;
    uint64_t beat = 0;
    Instant at;
  };
  void NoteSign(const Sign& sign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::deque<Sign> signs_ ABSL_GUARDED_BY(mu_);  // Answers of this voter to a leader's appends.
  Sign last_sign_ ABSL_GUARDED_BY(mu_);          // The one that came last of them.
  Instant taken_at_ ABSL_GUARDED_BY(mu_) =
      Instant::min();  // When the last that was taken was made.
  VoterMembers candidates_ ABSL_GUARDED_BY(mu_);
  bool look_ ABSL_GUARDED_BY(mu_) = false;  // Watch must look now.
  // The entry that was sent last without its record, for those who ask for that; null if none was.
  SharedEntry offered_ ABSL_GUARDED_BY(mu_);
  // The record of this entry is being asked for.
  std::optional<Ballot> asks_for_ ABSL_GUARDED_BY(mu_);
  // For Watch's thread only.
  std::optional<Instant> preflight_since_;
  VoterMembers told_;                   // At the last call of on_places.
  std::optional<Instant> alone_since_;  // There are candidates, and none has become a voter.
  bool joined_or_said_ = false;  // One has become a voter, or people were told that none has.
  std::map<Incarnation, VoterMember> heard_ ABSL_GUARDED_BY(mu_);  // The senders of messages.
  std::thread watch_;
  VoterSender sender_;  // Ends first: its thread calls TakeRecord.
};

}  // namespace hlaunch
