// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/rendezvous_client.h"

namespace hlaunch {

// The client of the agent that lives in the rendezvous' own process: plain calls, no thread and no
// network. This agent is never suspect, and if it leaves, the job is over.
//
// The listener may be called from within Join and Send, on the caller's thread, and from any thread
// that changes the job, but always one call at a time.
//
// Thread-safe. `rendezvous` must outlive it.
class LocalRendezvousClient : public RendezvousClient {
 public:
  explicit LocalRendezvousClient(JobRendezvous& rendezvous);
  ~LocalRendezvousClient() override;

  // An empty address becomes loopback.
  void Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) override;
  void Send(const NodeUpdate& update) override;
  void Answer(NodeAnswer answer) override;
  void Tell(RoundWord word) override;

  // If the job may have more nodes, returns the allowance as if the rendezvous had just been heard:
  // even if this process stands still, its workers must end as on every other node.
  Allowance AllowanceNow(Instant now) const override;

 private:
  class Link;

  JobRendezvous& rendezvous_;
  std::string node_id_;
  Incarnation incarnation_ = 0;
  std::optional<Lease> lease_;  // Unset if the job has one node.
  std::shared_ptr<Link> link_;  // Shared with the rendezvous from Join to the conversation's end.
};

}  // namespace hlaunch
