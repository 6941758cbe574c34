// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/failover/kubernetes/api_client.h"
#include "rendezvous/failover/kubernetes/api_objects.h"
#include "rendezvous/failover/kubernetes/held_lease.h"
#include "rendezvous/failover/kubernetes/lease_sight.h"
#include "rendezvous/job/record/record_keeper.h"

namespace hlaunch {

// Keeps records in Kubernetes: a ConfigMap per job, and a Lease that the leader holds. Each write
// names the state that it replaces, and a new leader first writes each record once, so Kubernetes
// refuses what the former leader still writes.
//
// Thread-safe as RecordKeeper.
class KubernetesKeeper final : public RecordKeeper {
 public:
  // `key` seals records (sealed_text.h); if it is empty, they are stored in clear.
  KubernetesKeeper(std::shared_ptr<ApiClient> client, ApiPlace place, std::string key,
                   std::unique_ptr<HeldLease> lease);

  // Takes over all records by writing each once. A damaged record stays until the next one of its
  // job replaces it.
  absl::StatusOr<Listed> List() override;
  absl::StatusOr<RecordVersion> Keep(const JobRecord& record, RecordVersion expected) override;
  Instant LeadsUntil() const override { return lease_->HeldUntil(); }
  bool shared() const override { return true; }
  int max_nodes() const override { return 8192; }
  std::string place() const override;

 private:
  // What is known of the object of one job. A value.
  struct Known {
    RecordVersion number = 0;
    RecordObject object;  // Without the packed record. Without metadata: no object exists.
    // The last write had no answer, or the stored record is damaged. Then an object that names this
    // process as its writer may be replaced.
    bool unsure = false;
  };
  Known KnownOf(const std::string& name) const;
  // Returns the number of `known`.
  RecordVersion Remember(const std::string& name, Known known);
  RecordVersion NextNumber();
  absl::StatusOr<std::vector<RecordObject>> ListAll();
  absl::Status Adopt(RecordObject record, Listed* listed);
  // Returns no value if the object is gone.
  absl::StatusOr<std::optional<RecordObject>> Touch(RecordObject record);
  absl::StatusOr<JobRecord> Unpack(const RecordObject& record) const;
  absl::Status Note(const RecordObject& record, Listed* listed);
  absl::StatusOr<RecordVersion> Replace(RecordObject wanted, Known known, RecordVersion expected);
  absl::Status Reread(const std::string& name, Known* known);
  absl::StatusOr<ApiClient::Answer> Write(const RecordObject& wanted, int* unanswered);
  absl::StatusOr<RecordVersion> Finish(const RecordObject& wanted, const ApiClient::Answer& answer,
                                       bool begins);
  absl::StatusOr<ApiClient::Answer> Call(const ApiClient::Request& request,
                                         int* unanswered = nullptr);
  std::string ObjectWords(const std::string& name) const;

  const std::shared_ptr<ApiClient> client_;  // Shared with the candidate.
  const ApiPlace place_;
  const std::string key_;
  const std::unique_ptr<HeldLease> lease_;

  mutable Mutex mu_;
  RecordVersion last_number_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mu_);  // By the object's name.
};

// A service that may lead. It remembers what it has seen of the leader's lease.
//
// Belongs to one thread.
class KubernetesCandidate {
 public:
  struct Options {
    ApiServer server;
    ApiPlace place;
    std::string key;   // As for KubernetesKeeper.
    std::string name;  // What others see as the leader's name: "node0:29400".
    // A leader without a sign of life for this long has lost the lead.
    Duration lease = std::chrono::seconds(10);
  };
  explicit KubernetesCandidate(Options options);

  // Tries once to lead.
  //
  // Errors: as HeldLease::Take.
  absl::StatusOr<std::unique_ptr<RecordKeeper>> Lead();

 private:
  const Options options_;
  const std::shared_ptr<ApiClient> client_;  // Shared with keepers.
  const std::string holder_;
  LeaseSight sight_;
};

}  // namespace hlaunch
