// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/commands/decide_cluster.h"

#include "absl/strings/str_cat.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/text/printable.h"

namespace hlaunch {
namespace {

// Names what the job has that only a job that starts here can have; empty: nothing.
std::string OnlyHere(const Options& options, const ClusterFacts& facts) {
  const InsteadOfJob& instead = options.instead;
  if (facts.is_part) return "this is a part of a job already";
  if (facts.in_worker) return "this is a worker of another job";
  if (!facts.scheduler.empty()) {
    return absl::StrCat("this is in a job of ", facts.scheduler, ", which has its own hosts");
  }
  if (options.hosts.any()) return "--hosts or --hostfile says on which hosts the job starts";
  const Meeting& meeting = options.meeting;
  if (meeting.endpoint.has_value()) return "--rdzv-endpoint says where its nodes meet";
  if (!meeting.master_addr.empty() || meeting.master_port.has_value()) {
    return "--master-addr or --master-port says where its nodes meet";
  }
  if (options.node.rank.has_value()) return "--node-rank says which of its nodes this is";
  if (options.node.is_host.has_value()) return "--rdzv-conf is_host says which node hosts";
  if (!meeting.local_addr.empty()) return "--local-addr is of this node";
  if (!meeting.certificates.none()) return "--tls-cert and the like are of nodes that meet by hand";
  if (instead.dry_run || instead.print_env.has_value() || instead.doctor) {
    return "nothing is to be started";
  }
  if (options.program == "torchrun") return "torchrun's name starts one node, here";
  return "";
}

// Returns the option that demands the cluster; empty: none.
std::string Demand(const Options& options) {
  if (options.cluster == kOwnCluster) return absl::StrCat("--cluster ", kOwnCluster);
  if (!options.placing.hosts.empty()) return "--nodes";
  if (!options.placing.labels.empty()) return "--constraint";
  return options.placing.exclusive ? "--exclusive" : "";
}

}  // namespace

absl::StatusOr<FirstDecision> DecideByWords(const Options& options, const ClusterFacts& facts) {
  const std::string demand = Demand(options);
  std::string only_here = OnlyHere(options, facts);
  if (only_here.empty() && options.cluster != "auto" && options.cluster != kOwnCluster) {
    only_here = absl::StrCat("--cluster ", options.cluster);
  }
  if (!demand.empty()) {
    if (only_here.empty()) return FirstDecision{JobGoes::kToCluster, demand};
    return absl::InvalidArgumentError(absl::StrCat(
        demand,
        " is for a job that goes to the cluster of this host's hlaunchd, and this one does "
        "not: ",
        only_here, "; leave one of them out"));
  }
  if (!only_here.empty()) return FirstDecision{JobGoes::kHere, only_here};
  if (options.policy.max_nodes == 1) return FirstDecision{JobGoes::kHere, "it has one node"};
  return FirstDecision{JobGoes::kWhereItCan, "nobody says where its nodes are"};
}

std::string WithoutHead(const HereAnswer& here) {
  return absl::StrCat("this host's hlaunchd does not reach the head of its cluster, ",
                      PrintableLine(here.head),
                      here.trouble.empty() ? "" : absl::StrCat(": ", PrintableLine(here.trouble)));
}

absl::StatusOr<bool> DecideByAnswer(const FirstDecision& first,
                                    const absl::StatusOr<HereAnswer>& here) {
  if (first.goes == JobGoes::kHere) return false;
  const bool must = first.goes == JobGoes::kToCluster;
  if (!here.ok()) {
    if (!must && absl::IsNotFound(here.status())) return false;
    return absl::Status(
        absl::IsNotFound(here.status()) ? absl::StatusCode::kFailedPrecondition
                                        : here.status().code(),
        absl::StrCat(must ? absl::StrCat(first.why, ": ") : "", here.status().message(),
                     must ? "" : "; to start the job here, add --cluster none"));
  }
  if (here->head.empty()) {
    if (!must) return false;
    return absl::FailedPreconditionError(absl::StrCat(
        first.why, ": this host's hlaunchd belongs to no cluster; see hlaunch cluster join"));
  }
  if (here->connected) return true;
  return absl::UnavailableError(absl::StrCat(
      WithoutHead(*here),
      must ? "; try again later" : "; try again later, or add --cluster none to start it here"));
}

}  // namespace hlaunch
