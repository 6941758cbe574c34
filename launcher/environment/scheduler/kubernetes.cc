// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Pods: the variables of PyTorchJob (Kubeflow v1), the index of an Indexed Job or JobSet, and the
// ordinal in the name of a StatefulSet's pod. Kubeflow Trainer v2 uses PET_*, which hlaunch reads
// as options.

#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/environment/scheduler/finders.h"
#include "launcher/text/endpoint.h"
#include "launcher/text/printable.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

// A pod's name "web-3" and its domain in the pod's own line of /etc/hosts, which kubelet writes:
// "10.1.0.7 web-3.web.default.svc.cluster.local web-3". Only a pod with a subdomain, which is one
// of a headless service, has a domain there.
struct PodName {
  std::string base;    // "web"
  int ordinal = -1;    // -1: the name does not end in a number.
  std::string domain;  // ".web.default.svc.cluster.local"; empty: no subdomain.
};

PodName ReadPodName(const Surroundings& surroundings) {
  PodName pod;
  const size_t dash = surroundings.host.rfind('-');
  if (dash != std::string::npos) {
    pod.base = surroundings.host.substr(0, dash);
    pod.ordinal = IntFrom(surroundings.host.substr(dash + 1), 0, kMaxNodes - 1);
  }
  std::ifstream file(surroundings.root + "/etc/hosts");
  const std::string prefix = absl::StrCat(surroundings.host, ".");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    for (size_t i = 1; i < words.size(); ++i) {
      if (absl::StartsWith(words[i], prefix)) pod.domain = words[i].substr(prefix.size() - 1);
    }
  }
  return pod;
}

void AddFirstPod(const PodName& pod, ClusterPlace& place) {
  place.no_endpoint =
      "this pod has no subdomain, so pods do not know each other's names: make a headless Service "
      "and set the pods' subdomain to its name, or add --rdzv-endpoint HOST";
  if (pod.domain.empty() || pod.ordinal < 0) return;
  place.Add("--rdzv-endpoint", absl::StrCat(pod.base, "-0", pod.domain, ":", kDefaultRdzvPort),
            "/etc/hosts", "the pod with index 0, as the headless service names it");
  place.Add("--rdzv-id", pod.base, "the pod's name", "without its index");
}

ClusterPlace FromIndex(const PodName& pod, const std::string& index_text) {
  ClusterPlace place;
  const int index = IntFrom(index_text, 0, kMaxNodes - 1);
  if (index < 0) {
    return RefusedPlace("kubernetes",
                        absl::StrCat("JOB_COMPLETION_INDEX '", PrintableLine(index_text),
                                     "': expected a number; --cluster none does without"));
  }
  place.cluster = "kubernetes";
  place.reason = "a pod of an Indexed Job (JOB_COMPLETION_INDEX)";
  place.Add("--node-rank", absl::StrCat(index), "JOB_COMPLETION_INDEX", "the pod's index");
  // A name that ends in another number is not the Job's name for this pod.
  AddFirstPod(pod.ordinal == index ? pod : PodName(), place);
  place.no_nnodes = absl::StrCat("this pod has index ", index,
                                 " of an Indexed Job (JOB_COMPLETION_INDEX) and runs by itself; "
                                 "for one job of all pods add --nnodes N, the Job's completions");
  return place;
}

ClusterPlace FromOrdinal(const PodName& pod) {
  ClusterPlace place;
  place.cluster = "kubernetes";
  place.reason = absl::StrCat("a pod with an ordinal and a headless service: ", pod.base, "-",
                              pod.ordinal, pod.domain);
  place.Add("--node-rank", absl::StrCat(pod.ordinal), "the pod's name", "its ordinal");
  AddFirstPod(pod, place);
  return place;
}

// The operator gives RANK and WORLD_SIZE to the pod, not to a worker. A worker of another launcher
// has a LOCAL_RANK as well.
bool IsPyTorchJob(const Environment& environment) {
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"}) {
    if (environment.Get(name).empty()) return false;
  }
  return environment.Get("LOCAL_RANK").empty() && environment.Get("TORCHELASTIC_RUN_ID").empty();
}

ClusterPlace FromPyTorchJob(const Surroundings& surroundings) {
  const Environment& environment = surroundings.environment;
  const int nodes = IntFrom(environment.Get("WORLD_SIZE"), 1, kMaxNodes);
  const int rank = IntFrom(environment.Get("RANK"), 0, nodes - 1);
  if (nodes < 0 || rank < 0) {
    return RefusedPlace(
        "kubernetes",
        absl::StrCat("RANK '", PrintableLine(environment.Get("RANK")), "' of WORLD_SIZE '",
                     PrintableLine(environment.Get("WORLD_SIZE")),
                     "': expected this pod's number and the number of pods; "
                     "--cluster none does without"));
  }
  ClusterPlace place;
  place.cluster = "kubernetes";
  place.reason = "a pod of a PyTorchJob (MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK)";
  place.Add("--nnodes", absl::StrCat(nodes), "WORLD_SIZE", "the operator counts pods");
  place.Add("--node-rank", absl::StrCat(rank), "RANK", "the pod's number");
  // Old operators give the first pod "localhost" as the address, where no other pod reaches it.
  const std::string address = environment.Get("MASTER_ADDR");
  const bool itself = rank == 0 && (address == "localhost" || IsLoopbackLiteral(address));
  place.Add("--master-addr", itself ? surroundings.host : address, "MASTER_ADDR",
            itself ? "this pod's own name in place of loopback" : "the first pod's service");
  place.Add("--master-port", environment.Get("MASTER_PORT"), "MASTER_PORT", "of the first pod");
  return place;
}

}  // namespace

ClusterPlace FindKubernetes(const Surroundings& surroundings, bool told) {
  const Environment& environment = surroundings.environment;
  const bool in_pod = !environment.Get("KUBERNETES_SERVICE_HOST").empty();
  const std::string index = environment.Get("JOB_COMPLETION_INDEX");
  if (!in_pod && index.empty() && !told) return {};
  if (!environment.Get("PET_NNODES").empty()) {
    return NoPlace("a pod whose PET_* variables say its place (Kubeflow Trainer)");
  }
  if (IsPyTorchJob(environment)) return FromPyTorchJob(surroundings);
  const PodName pod = ReadPodName(surroundings);
  if (!index.empty()) return FromIndex(pod, index);
  if (pod.ordinal >= 0 && !pod.domain.empty()) return FromOrdinal(pod);
  if (!in_pod) return {};
  return NoPlace(
      "a pod without an index: neither JOB_COMPLETION_INDEX nor an ordinal in its name "
      "with a headless service");
}

}  // namespace hlaunch
