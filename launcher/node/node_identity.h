// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/job/job_spec.h"
#include "launcher/node/node_link.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// The first of this host's places in the job that no other agent here holds. The claim is an
// abstract socket, which belongs to the network namespace and ends with its owner, this object.
class HostSlot {
 public:
  explicit HostSlot(const std::string& job_id);
  int number() const { return number_; }

 private:
  bool Claim(const std::string& name);

  int number_ = 0;
  UniqueFd fd_;
};

// What this node tells of itself when it joins by `link`. `address` is where the others reach it,
// a literal; empty: its route says so.
NodeInfo MakeNodeInfo(const JobSpec& spec, const NodeLink& link, const HostSlot& slot,
                      const std::string& address);

}  // namespace hlaunch
