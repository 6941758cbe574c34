// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "rendezvous/head/head_job.h"
#include "rendezvous/head/host_book.h"

// What of the head's knowledge outlives it: each job by itself, since most changes are of one, and
// the hosts together. All is pure.

namespace hlaunch {

// A value.
struct HeadRecord {
  uint64_t last_number = 0;
  std::vector<HeadHost> hosts;
  std::vector<HeadJob> jobs;
};

// Holds the job's token.
nlohmann::json JobToJson(const HeadJob& job);
// Errors:
//   InvalidArgument - it is none; the message names the field.
absl::StatusOr<HeadJob> ReadHeadJob(const nlohmann::json& body);

nlohmann::json HostsToJson(uint64_t last_number, const std::map<std::string, HeadHost>& hosts);
// Without jobs.
//
// Errors:
//   InvalidArgument - it is none; the message names the field.
absl::StatusOr<HeadRecord> ReadHosts(const nlohmann::json& body);

}  // namespace hlaunch
