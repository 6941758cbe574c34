// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"
#include "rendezvous/job/local_rendezvous_client.h"
#include "rendezvous/job/rendezvous_client.h"
#include "rendezvous/rpc/client/grpc_rendezvous_client.h"

namespace hlaunch {

// The client of the agent whose process hosts the rendezvous and may stop hosting it. It uses plain
// calls at first, and the network once another voter leads. The workers go on if the new leader
// is found within the loss limit.
//
// Thread-safe; its thread is "host-client".
class HostClient final : public RendezvousClient {
 public:
  struct Options {
    JobRendezvous* job = nullptr;  // Must outlive the client.
    // Returns the options of the network client, without `taken_up`. Called when they are needed.
    std::function<GrpcRendezvousClient::Options()> remote;
    std::function<VoterMembers()> voters;
    // Whether other nodes hold the job's record. If they do not, the job ends when the host leaves.
    // If they do, and nobody asked for the end (EndsWithHost), the client does not report the
    // leave; the other nodes hear of a death instead: NodeLink::Die.
    std::function<bool()> outlived;
    // Returns how long other nodes can go on if this process stands still while it leads, and its
    // keeper then ends it; max() if that does not depend on the keeper.
    std::function<Duration()> patience;
  };
  explicit HostClient(Options options);
  ~HostClient() override;

  // Another node leads now. Never blocks.
  void Leave();
  // As GrpcRendezvousClient::LedBy. Has no effect while this process leads.
  void LedBy(const VoterMembers& places);

  void Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) override;
  void Send(const NodeUpdate& update) override;
  void Answer(NodeAnswer answer) override;
  void Tell(RoundWord word) override;
  Allowance AllowanceNow(Instant now) const override;

 private:
  class LocalEar;

  void Run();
  bool AwaitLeave();
  void JoinRemote();
  std::shared_ptr<RendezvousClient> client() const;

  const Options options_;
  std::unique_ptr<LocalEar> ear_;  // The listener of the local client.

  mutable Mutex mu_;
  CondVar changed_;
  bool leaves_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  mutable Instant led_at_ ABSL_GUARDED_BY(mu_);  // When this process last led the job for certain.
  Instant looked_at_ ABSL_GUARDED_BY(mu_);       // When the thread last looked at the clock.
  Instant forgiven_until_ ABSL_GUARDED_BY(mu_);  // See GiveUpAt.
  std::optional<NodeInfo> info_ ABSL_GUARDED_BY(mu_);
  NodeUpdate latest_ ABSL_GUARDED_BY(mu_);
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  Listener* listener_ ABSL_GUARDED_BY(mu_) = nullptr;
  // Shared with the calls in progress; both are null between the two clients.
  std::shared_ptr<LocalRendezvousClient> local_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<GrpcRendezvousClient> remote_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace hlaunch
