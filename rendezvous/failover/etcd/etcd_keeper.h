// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/failover/etcd/etcd_client.h"
#include "rendezvous/job/record/record_keeper.h"

namespace hlaunch {

// Keeps records in etcd: a key per job, and one key with a lease for the leader. Each write names
// the revision at which the leader's key was created, so etcd refuses writes of a former leader.
//
// Its thread, "etcd-lease", keeps the lease alive. Thread-safe as RecordKeeper.
class EtcdKeeper final : public RecordKeeper {
 public:
  struct Options {
    EtcdCluster cluster;
    std::string prefix = "/hlaunch";  // All its keys begin with this.
    std::string name;                 // What others see as the leader's name: "node0:29400".
    // A leader without a sign of life for this long has lost the lead. etcd may make it longer.
    Duration lease = std::chrono::seconds(5);
    // The destructor takes at most this long to give the lead back.
    Duration last_word = std::chrono::seconds(1);
    // A client of `cluster`, for a caller that tries often. If null, the keeper makes one.
    std::shared_ptr<EtcdClient> client = nullptr;
  };

  // Tries once to lead.
  //
  // Errors:
  //   AlreadyExists - another service leads; the message is that service's name.
  //   others - as EtcdClient.
  static absl::StatusOr<std::unique_ptr<EtcdKeeper>> Lead(Options options);

  // Lets another service lead at once.
  ~EtcdKeeper() override;

  // A damaged record stays until the next one of its job replaces it.
  absl::StatusOr<Listed> List() override;
  absl::StatusOr<RecordVersion> Keep(const JobRecord& record, RecordVersion expected) override;
  Instant LeadsUntil() const override;
  bool shared() const override { return true; }
  int max_nodes() const override { return 16384; }
  std::string place() const override { return client_->words(); }

 private:
  EtcdKeeper(Options options, std::shared_ptr<EtcdClient> client)
      : options_(std::move(options)), client_(std::move(client)) {}

  std::string LeaderKey() const { return options_.prefix + "/leader"; }
  std::string JobPrefix() const { return options_.prefix + "/job/"; }
  absl::Status BeginLease();
  absl::Status TakeLeadership();
  void EndLease();
  void KeepAlive();
  // Returns false if the lease has ended or the thread must stop.
  bool Renew();
  bool HasLeaderKey(Instant deadline);
  void NoteLeaseLocked(Instant sent, int64_t seconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Instant LeadsUntilLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsUnsure(const std::string& job_id) const;
  absl::Status Lose(const std::string& why);
  void LoseLocked(absl::string_view why) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ListPage(std::string* from, Listed* listed, bool* more);
  // The outcome of a write.
  struct Written {
    bool done = false;
    RecordVersion version = 0;  // The version of the record that is stored now.
    bool same = false;          // That record is the one that was to be written.
  };
  absl::StatusOr<Written> Write(const std::string& key, const std::string& value,
                                RecordVersion expected, Instant until, int* unanswered);

  const Options options_;
  const std::shared_ptr<EtcdClient> client_;
  int64_t lease_ = 0;
  int64_t fence_ = 0;  // The revision at which the leader's key was created.

  mutable Mutex mu_;
  CondVar stopped_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  Instant until_ ABSL_GUARDED_BY(mu_);
  mutable bool lost_ ABSL_GUARDED_BY(mu_) = false;
  // Jobs for which it is unknown whether the last write was done, or whose record is damaged.
  std::set<std::string> unsure_ ABSL_GUARDED_BY(mu_);

  std::thread thread_;
};

}  // namespace hlaunch
