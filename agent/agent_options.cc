// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/agent_options.h"

namespace hlaunch {
namespace {

CheckPlan PlanChecks(const AgentOptions& options, const Assignment& assignment) {
  CheckPlan plan = options.checks;
  if (!assignment.worker_store) {  // Otherwise there is no store to meet at.
    plan.joint = {assignment.master_addr, assignment.master_port, assignment.round,
                  assignment.node_rank,   assignment.num_nodes,   options.info.host};
  }
  return plan;
}

}  // namespace

CheckPlan PlanChecksBefore(const AgentOptions& options, const Assignment& assignment) {
  CheckPlan plan = PlanChecks(options, assignment);
  plan.full = assignment.preflight == Preflight::kFull;
  if (plan.joint) plan.joint->full = plan.full;
  return plan;
}

CheckPlan PlanChecksDuring(const AgentOptions& options, const Assignment& assignment) {
  CheckPlan plan = PlanChecks(options, assignment);
  plan.watch = options.health_interval;
  plan.log_directory.clear();  // Each check would load the file server from every node.
  return plan;
}

}  // namespace hlaunch
