// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/rendezvous_client.h"

namespace hlaunch {

// The end of the agent that lives in the rendezvous' own process: plain calls, no thread and no
// wire. It is never suspect, and if it leaves the job is over.
//
// The listener may be called from within Join and Send, on the caller's thread, and from any
// thread that changes the job; one call at a time all the same.
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

  // If the job may have more nodes, as if the rendezvous had just been heard: a caller that stands
  // still has to end its workers as every other node.
  Allowance AllowanceNow(Instant now) const override;

 private:
  class Link;

  JobRendezvous& rendezvous_;
  std::string node_id_;
  Incarnation incarnation_ = 0;
  std::optional<Lease> lease_;  // Unset: the job has one node.
  std::shared_ptr<Link> link_;  // With the rendezvous, from Join to the end of the conversation.
};

}  // namespace hlaunch
