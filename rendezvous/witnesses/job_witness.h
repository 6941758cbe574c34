// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/job/deadline_threads.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/round/round.h"
#include "rendezvous/trust/trust.h"
#include "rendezvous/witness/witness_rule.h"
#include "rendezvous/witness_keeping/boot_clock.h"
#include "rendezvous/witness_keeping/witness_thread.h"
#include "rendezvous/witness_wire/witness_post.h"
#include "rendezvous/witnesses/witness_sender.h"

namespace hlaunch {

// Whether a job of this policy has witnesses. Their record has to fit into one message.
bool HasWitnesses(const JobPolicy& policy);

// The times of its witnesses. Pure.
WitnessRule WitnessRuleOf(const JobPolicy& policy);

// One process of those that keep the record of a job among its own agents. Whoever leads them
// has the job's rendezvous, the others stand by: to the server in front of it, it is the job or
// who says where that is.
//
// Thread-safe. Its threads are "hl-witness", and one that tells the witness of the job's nodes.
class JobWitness final : public Jobs, public WitnessPost {
 public:
  struct Options {
    std::string job_id;
    JobPolicy policy;
    WitnessMember self;  // The agent of this process; its address as others reach it.
    Trust trust;
    // Where a node that was started anew in the first host's place would begin the job; of no
    // incarnation. Unset: unknown.
    std::optional<WitnessMember> endpoint;
    // Jobs are not decided here any more; ends what agents have open here. From a thread of its
    // own or the server's, with no lock held; must not block.
    std::function<void(const absl::Status& why)> on_lost;
    // Places() has changed while this one leads; from a thread of its own. May be empty.
    std::function<void()> on_places = nullptr;
  };

  // Stands by.
  //
  // Errors: as WitnessThread::Start.
  static absl::StatusOr<std::unique_ptr<JobWitness>> Start(Options options);
  // Requires: the server in front of it is gone, and so is whoever has a job of it.
  ~JobWitness() override;

  // Begins the job here, as the first witness. The job lives as long as this does. Once, and
  // before anything else.
  JobRendezvous& Found(JobRules rules);

  // Whether the job is led from here.
  bool leads() const;
  // Whether others hold its record too, so that one of them can lead it when this one is gone.
  bool Outlived() const { return witness()->group().members.size() > 1; }
  // The job if it is, or was last; null: never.
  std::shared_ptr<JobRendezvous> job() const;

  // Jobs.
  absl::Status CheckLeads() const override;
  absl::StatusOr<std::shared_ptr<JobRendezvous>> Open(const NodeInfo& info,
                                                      const NodeUpdate& update) override;
  std::shared_ptr<JobRendezvous> Find(absl::string_view job_id) override;
  std::optional<JobStatus> Status(absl::string_view job_id) override;
  std::vector<JobStatus> List() override;

  // WitnessPost.
  absl::Status Hear(absl::string_view job_id, WitnessLetter letter) override;
  void ProvenDead(absl::string_view job_id, Incarnation incarnation) override;
  WitnessMembers Places() const override;

 private:
  // The record as it was kept last, in one term.
  struct Kept {
    Term term = 0;
    uint64_t version = 0;
    // The job is: nothing that others could decide differently follows.
    std::atomic<bool> over = false;
  };

  explicit JobWitness(Options options);
  absl::Status Begin();
  std::shared_ptr<WitnessThread> witness() const;
  JobRules Rules(JobRules rules, Term term, uint64_t version);
  absl::Status Keep(const std::shared_ptr<Kept>& kept, const JobRecord& record);
  bool Leads(const Kept& kept) const;
  void TakeOver(Term term, const WitnessEntry& entry);
  void Lose(const std::string& why);
  void Yield(const WitnessMember& leader);
  void Send(const WitnessMessage& message);
  std::optional<WitnessMember> Addressee(Incarnation incarnation) const;
  void Watch();
  void TellNodes(JobRendezvous& job);
  void CallToEndpoint();

  const Options options_;
  const BootClock clock_;
  WitnessSender sender_;
  DeadlineThreads keeping_;

  mutable Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // Shared with calls that come from other threads meanwhile.
  std::shared_ptr<WitnessThread> witness_ ABSL_GUARDED_BY(mu_);
  bool founds_ ABSL_GUARDED_BY(mu_) = false;  // It founded the group, and nobody else was in it.
  bool leads_ ABSL_GUARDED_BY(mu_) = false;
  Term term_ ABSL_GUARDED_BY(mu_) = 0;  // In which it led last.
  std::shared_ptr<JobRendezvous> job_ ABSL_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<JobRendezvous>> former_ ABSL_GUARDED_BY(mu_);
  std::optional<WitnessMember> leader_ ABSL_GUARDED_BY(mu_);  // The last that was heard to lead.
  std::string why_ ABSL_GUARDED_BY(mu_);                      // The last line of the witness.
  WitnessMembers candidates_ ABSL_GUARDED_BY(mu_);
  WitnessMembers told_;  // By on_places last; of the thread that watches.
  std::map<Incarnation, WitnessMember> heard_ ABSL_GUARDED_BY(mu_);  // Who has written.
  std::thread watch_;
};

}  // namespace hlaunch
