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
#include "rendezvous/keeping/record_keeper.h"
#include "rendezvous/kubernetes/api_client.h"
#include "rendezvous/kubernetes/api_objects.h"
#include "rendezvous/kubernetes/held_lease.h"
#include "rendezvous/kubernetes/lease_sight.h"

namespace hlaunch {

// Keeps records in Kubernetes: a ConfigMap per job, and a Lease of whoever leads. A write names the
// state that it replaces, and whoever begins to lead writes each record once, so Kubernetes
// refuses what whoever led before still writes.
//
// Thread-safe as RecordKeeper.
class KubernetesKeeper final : public RecordKeeper {
 public:
  // `key` seals records (sealed_text.h); empty: they are in clear.
  KubernetesKeeper(std::shared_ptr<ApiClient> client, ApiPlace place, std::string key,
                   std::unique_ptr<HeldLease> lease);

  // Makes all records its own. One that is damaged stays, and is replaced by the next of its job.
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
    RecordObject object;  // Without the record; no metadata: there is no object.
    // The last write had no answer, or what is there is damaged: what bears this one's name there
    // may be replaced.
    bool unsure = false;
  };
  Known KnownOf(const std::string& name) const;
  // Returns its number.
  RecordVersion Remember(const std::string& name, Known known);
  RecordVersion NextNumber();
  absl::StatusOr<std::vector<RecordObject>> ListAll();
  absl::Status Adopt(RecordObject record, Listed* listed);
  // Unset: it is gone.
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

  const std::shared_ptr<ApiClient> client_;  // Shared with whoever tries to lead again.
  const ApiPlace place_;
  const std::string key_;
  const std::unique_ptr<HeldLease> lease_;

  mutable Mutex mu_;
  RecordVersion last_number_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mu_);  // By the object's name.
};

// A service that leads at times; remembers what it has seen of who leads.
//
// Belongs to one thread.
class KubernetesCandidate {
 public:
  struct Options {
    ApiServer server;
    ApiPlace place;
    std::string key;   // As of KubernetesKeeper.
    std::string name;  // What others are told of who leads: "node0:29400".
    // Without a sign of life for so long it has lost.
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
