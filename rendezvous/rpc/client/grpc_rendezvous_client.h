// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/rpc/client/client_options.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

class Conversation;

// A node's end of the rendezvous over gRPC.
//
// Before the first answer the client retries until the join time-out, since the rendezvous' host
// and its name may appear later than this node. After a second it says what it waits for. After the
// first answer it retries until the loss limit, counted from when it sent the last message that was
// answered. A pause of this process is forgiven (ForgivenUntil): the client then waits for
// TimeToAsk. While connected it gives a sign of life at least every half lease, and treats a
// connection that is silent for a whole lease as broken.
//
// Thread-safe; calls the listener from its own thread, "rdzv-client". The destructor first delivers
// a last kLeft or kFinished, for at most 2 s.
class GrpcRendezvousClient final : public RendezvousClient {
 public:
  using Options = ClientOptions;

  explicit GrpcRendezvousClient(Options options);
  ~GrpcRendezvousClient() override;

  // `listener` must outlive the client. If info.address is empty, the client fills in this host's
  // address on its route to the rendezvous. If its thread cannot be started, this calls OnEnd with
  // ResourceExhausted before it returns.
  void Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) override;
  void Send(const NodeUpdate& update) override;
  void Answer(NodeAnswer answer) override;
  void Tell(RoundWord word) override;
  Allowance AllowanceNow(Instant now) const override;

  // This process has learned in another way that the rendezvous is at the first of `places`; the
  // others may lead later. The client goes there at once. Has no effect before Join.
  void LedBy(const VoterMembers& places);

  // True once a rendezvous has let this node in.
  bool contacted() const { return contacted_; }

 private:
  const Options options_;
  std::atomic<bool> contacted_ = false;
  std::unique_ptr<Conversation> conversation_;
  std::atomic<Conversation*> begun_ = nullptr;  // The same, for LedBy.
};

}  // namespace hlaunch
