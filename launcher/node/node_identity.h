// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/job/spec/job_spec.h"
#include "launcher/node/node_link.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// The lowest slot number of the job on this host that no other agent here holds. The claim is an
// abstract socket. It belongs to the network namespace and ends with this object.
class HostSlot {
 public:
  explicit HostSlot(const std::string& job_id);
  int number() const { return number_; }

 private:
  bool Claim(const std::string& name);

  int number_ = 0;
  UniqueFd fd_;
};

// Makes what this node tells about itself when it joins through `link`. `address` is the literal at
// which the others reach this node; if it is empty, the route decides.
NodeInfo MakeNodeInfo(const JobSpec& spec, const NodeLink& link, const HostSlot& slot,
                      const std::string& address);

}  // namespace hlaunch
