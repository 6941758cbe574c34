// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Services that describe their nodes in JSON: SageMaker and Vertex AI.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/printable.h"
#include "nlohmann/json.hpp"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

using nlohmann::json;

// The hosts of a Vertex job, pool by pool in the order of the pools' names, and which of them this
// one is (-1: none).
struct VertexHosts {
  std::vector<std::string> names;
  int own = -1;
};

VertexHosts ReadClusterSpec(const json& spec) {
  VertexHosts hosts;
  const json cluster = spec.value("cluster", json::object());
  const json task = spec.value("task", json::object());
  if (!cluster.is_object() || !task.is_object()) return hosts;
  const json type = task.value("type", json()), index = task.value("index", json());
  for (const auto& [pool, list] : cluster.items()) {  // Ordered by name.
    for (size_t i = 0; list.is_array() && i < list.size() && hosts.names.size() < kMaxNodes; ++i) {
      if (type == pool && index == i) hosts.own = static_cast<int>(hosts.names.size());
      hosts.names.push_back(list[i].is_string() ? list[i].get<std::string>() : "");
    }
  }
  return hosts;
}

}  // namespace

ClusterPlace FindSageMaker(const Surroundings& surroundings, bool) {
  const Environment& environment = surroundings.environment;
  const std::string text = environment.Get("SM_HOSTS");
  const std::string own = environment.Get("SM_CURRENT_HOST");
  if (text.empty() || own.empty()) return {};
  const json list = json::parse(text, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> hosts;
  for (const json& host : list.is_array() ? list : json::array()) {
    if (host.is_string() && hosts.size() < kMaxNodes) hosts.push_back(host.get<std::string>());
  }
  // SageMaker's own launchers choose the first host in this order.
  std::sort(hosts.begin(), hosts.end());
  const auto found = std::find(hosts.begin(), hosts.end(), own);
  if (found == hosts.end()) {
    return RefusedPlace(
        "sagemaker", absl::StrCat("SM_CURRENT_HOST '", PrintableLine(own), "' is not in SM_HOSTS '",
                                  PrintableLine(text.substr(0, 80)), "'", kSayPlaceYourself));
  }
  ClusterPlace place;
  place.cluster = "sagemaker";
  place.reason = "a host of a SageMaker training job (SM_HOSTS, SM_CURRENT_HOST)";
  place.Add("--nnodes", absl::StrCat(hosts.size()), "SM_HOSTS", "hosts of the training job");
  place.Add("--node-rank", absl::StrCat(found - hosts.begin()), "SM_CURRENT_HOST",
            "of SM_HOSTS in alphabetical order");
  place.Add("--rdzv-endpoint", absl::StrCat(hosts[0], ":7777"), "SM_HOSTS",
            "the first in alphabetical order; SageMaker's own port");
  if (const std::string job = environment.Get("TRAINING_JOB_NAME"); !job.empty()) {
    place.Add("--rdzv-id", PrintableLine(job), "TRAINING_JOB_NAME", "the training job");
  }
  const std::string gpus = environment.Get("SM_NUM_GPUS");
  if (IntFrom(gpus, 1, kMaxNodes) > 0) {
    place.Add("--nproc-per-node", gpus, "SM_NUM_GPUS", "a worker for each GPU of this host");
  }
  return place;
}

ClusterPlace FindVertex(const Surroundings& surroundings, bool) {
  const Environment& environment = surroundings.environment;
  const std::string text = environment.Get("CLUSTER_SPEC");
  if (text.empty()) return {};
  const json spec = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const VertexHosts hosts = spec.is_object() ? ReadClusterSpec(spec) : VertexHosts();
  const auto first = ParseEndpoint(hosts.names.empty() ? "" : hosts.names[0], kDefaultRdzvPort);
  if (hosts.own < 0 || !first.ok()) {
    return RefusedPlace(
        "vertex", absl::StrCat("CLUSTER_SPEC '", PrintableLine(text.substr(0, 80)),
                               "' does not say which of its hosts this is", kSayPlaceYourself));
  }
  ClusterPlace place;
  place.cluster = "vertex";
  place.reason = "a host of a Vertex AI job (CLUSTER_SPEC)";
  place.Add("--nnodes", absl::StrCat(hosts.names.size()), "CLUSTER_SPEC", "hosts of all pools");
  place.Add("--node-rank", absl::StrCat(hosts.own), "CLUSTER_SPEC",
            "in the order of the pools' names");
  place.Add("--rdzv-endpoint", absl::StrCat(first->host, ":", first->port), "CLUSTER_SPEC",
            "the first host of the first pool, and its port");
  if (const std::string job = environment.Get("CLOUD_ML_JOB_ID"); !job.empty()) {
    place.Add("--rdzv-id", PrintableLine(job), "CLOUD_ML_JOB_ID", "the job");
  }
  return place;
}

}  // namespace hlaunch
