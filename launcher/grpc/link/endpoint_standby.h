// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "launcher/job/spec/hosting.h"
#include "launcher/job/spec/job_spec.h"
#include "rendezvous/failover/voters/job_voter.h"
#include "rendezvous/net/trust/trust.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/rpc/rendezvous_server.h"

namespace hlaunch {

// What a node does at the endpoint of its job while another node leads: it answers there, and says
// who leads, so that nodes still come by the endpoint.
//
// Belongs to one thread at a time; any thread may call EndStreams.
class EndpointStandby {
 public:
  // Both must outlive the object.
  EndpointStandby(const JobSpec& spec, const Trust& trust) : spec_(spec), trust_(trust) {}

  bool serves() const { return server_ != nullptr; }
  // Whether no voter of this node answers there, but only who says where the others are.
  bool guides() const { return guide_ != nullptr; }

  // Takes the port once it has been free twice in a row: whoever begins a new job there may need it
  // for a moment. Then `voter` answers there; without one (null), this node may never become one,
  // and those who lead the job call to the endpoint. Replaces what served there before.
  //
  // Errors: as Listen, JobVoter::Start and RendezvousServer::Start.
  absl::Status Begin(const HostingVerdict& verdict, const JobPolicy& policy, JobVoter* voter);

  // Ends the streams that the voter of this node has there.
  void EndStreams(const absl::Status& why);

  // Ends the server. The voter must live until then.
  void Shutdown();

 private:
  const JobSpec& spec_;
  const Trust& trust_;
  bool was_free_ = false;
  std::unique_ptr<JobVoter> guide_;  // Null: the node's own voter answers there.
  std::unique_ptr<RendezvousServer> server_;
  std::atomic<RendezvousServer*> serving_voter_ = nullptr;  // server_, if that voter answers there.
};

}  // namespace hlaunch
