// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/head/own_limits.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {

size_t BytesOf(const JobRequest& request) {
  size_t bytes = sizeof(request) + request.name.size() + request.directory.size();
  for (const auto* list : {&request.hosts, &request.labels, &request.options, &request.script,
                           &request.environment, &request.limits}) {
    for (const std::string& text : *list) bytes += sizeof(text) + text.size();
  }
  return bytes;
}

namespace {

// An order to start is one frame of kMaxClusterFrame. The rest of it is for what the head adds.
constexpr size_t kMostSent = 3 << 20;
constexpr size_t kMostOfAll = 256UL << 20;  // All start orders of a job, in memory.

}  // namespace

absl::Status MaySubmit(const JobRequest& request, const OwnJobs& own, int all_jobs,
                       const OwnLimits& limits) {
  if (limits.max_nodes > 0 && request.min_nodes > limits.max_nodes) {
    return absl::InvalidArgumentError(absl::StrCat("a job of ", request.min_nodes,
                                                   " nodes can never start here: a user may have ",
                                                   limits.max_nodes, " at the same time"));
  }
  const size_t bytes = BytesOf(request);
  const size_t sent = TextOf(ToJson(request)).size();  // JSON writes some bytes as six.
  const size_t nodes = static_cast<size_t>(request.max_nodes) + request.spares;
  if (sent > kMostSent || bytes * nodes > kMostOfAll) {
    return absl::InvalidArgumentError(
        absl::StrCat("the job's words and environment have ", std::max(bytes, sent) >> 10,
                     " KiB, which are too many for ", nodes, nodes == 1 ? " node" : " nodes",
                     "; --export names what of the environment goes"));
  }
  if (own.waiting >= limits.max_waiting) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "you have ", own.waiting, " jobs waiting, which is as many as a user may have"));
  }
  if (own.waiting_bytes + bytes > limits.max_waiting_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("your waiting jobs have ", own.waiting_bytes >> 20,
                     " MiB of words and environment, which is as much as a user may have"));
  }
  if (all_jobs >= limits.max_jobs) {
    return absl::ResourceExhaustedError(
        absl::StrCat("this cluster has ", all_jobs, " jobs, which is as many as it can hold"));
  }
  return absl::OkStatus();
}

std::string OverOwnLimit(const JobRequest& request, const OwnJobs& own, const OwnLimits& limits) {
  if (limits.max_running > 0 && own.running >= limits.max_running) {
    return absl::StrCat("waits for another job of its user to end: a user may have ",
                        limits.max_running, " running");
  }
  if (limits.max_nodes > 0 && own.nodes + request.min_nodes > limits.max_nodes) {
    return absl::StrCat("waits for another job of its user to end: a user may have ",
                        limits.max_nodes, " nodes, and ", own.nodes, " are taken");
  }
  return "";
}

}  // namespace hlaunch
