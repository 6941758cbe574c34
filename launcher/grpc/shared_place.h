// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/command/service_options.h"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"
#include "rendezvous/failover/kubernetes/kubernetes_keeper.h"
#include "rendezvous/job/record/record_keeper.h"

namespace hlaunch {

// A place where several services keep their jobs. One of these services leads.
struct SharedPlace {
  using Attempt = std::function<absl::StatusOr<std::unique_ptr<RecordKeeper>>()>;

  std::string words;  // For people: "etcd at a:2379".
  Duration ask_again{};
  // Returns the function with which the service of this name tries to lead, as
  // JobLeader::Options::lead.
  std::function<Attempt(const std::string& name)> candidate;
};

// Finds the place that `options` name; unset if they name none. `token` is the service's; empty:
// none.
//
// Errors:
//   InvalidArgument - a file cannot be read, or the options do not tell where the place is.
absl::StatusOr<std::optional<SharedPlace>> FindSharedPlace(const ServiceOptions& options,
                                                           const Environment& environment,
                                                           const std::string& token);

// Where a pod finds its service account.
inline constexpr char kServiceAccount[] = "/var/run/secrets/kubernetes.io/serviceaccount";

// The options that `state` means for this process, in a pod or outside, without the service's name.
//
// Errors: as FindSharedPlace.
absl::StatusOr<KubernetesCandidate::Options> FindKubernetes(const KubernetesState& state,
                                                            const Environment& environment,
                                                            const std::string& service_account);

}  // namespace hlaunch
