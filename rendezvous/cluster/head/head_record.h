// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "rendezvous/cluster/head/head_job.h"
#include "rendezvous/cluster/head/host_book.h"

// The part of the head's state that survives its restart. Each job is stored by itself, since most
// changes concern one job; the hosts are stored together. All is pure.

namespace hlaunch {

// A value.
struct HeadRecord {
  uint64_t last_number = 0;
  std::vector<HeadHost> hosts;
  std::vector<HeadJob> jobs;
};

// The result contains the job's token.
nlohmann::json JobToJson(const HeadJob& job);
// Errors:
//   InvalidArgument - `body` is no job; the message names the field.
absl::StatusOr<HeadJob> ReadHeadJob(const nlohmann::json& body);

nlohmann::json HostsToJson(uint64_t last_number, const std::map<std::string, HeadHost>& hosts);
// The result has no jobs.
//
// Errors:
//   InvalidArgument - `body` is no list of hosts; the message names the field.
absl::StatusOr<HeadRecord> ReadHosts(const nlohmann::json& body);

}  // namespace hlaunch
