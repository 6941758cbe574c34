// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"
#include "rendezvous/grpc/grpc_rendezvous_client.h"
#include "rendezvous/job/local_rendezvous_client.h"
#include "rendezvous/job/rendezvous_client.h"

namespace hlaunch {

// The end of the agent whose process hosts the rendezvous, and may cease to: by plain calls at
// first, and over the network once another witness leads. The workers live on, as long as the new
// leader is found within the loss limit.
//
// Thread-safe; its thread is "host-client".
class HostClient final : public RendezvousClient {
 public:
  struct Options {
    JobRendezvous* job = nullptr;  // Must outlive it.
    // What the other client needs, asked for once it is needed; without `taken_up`.
    std::function<GrpcRendezvousClient::Options()> remote;
    std::function<WitnessMembers()> witnesses;
    // Whether others hold the job's record. The host's leave ends the job; where they do and nobody
    // wished that (EndsWithHost), it is not said, and they hear of a death: NodeLink::Die.
    std::function<bool()> outlived;
  };
  explicit HostClient(Options options);
  ~HostClient() override;

  // Another one leads. Never blocks.
  void Leave();

  void Join(const NodeInfo& info, const NodeUpdate& update, Listener* listener) override;
  void Send(const NodeUpdate& update) override;
  void Answer(NodeAnswer answer) override;
  Allowance AllowanceNow(Instant now) const override;

 private:
  class LocalEar;

  void Run();
  void JoinRemote();
  std::shared_ptr<RendezvousClient> client() const;

  const Options options_;
  std::unique_ptr<LocalEar> ear_;  // The listener of the local client.

  mutable Mutex mu_;
  CondVar changed_;
  bool leaves_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  mutable Instant led_at_ ABSL_GUARDED_BY(mu_);  // When the job was decided here for certain.
  std::optional<NodeInfo> info_ ABSL_GUARDED_BY(mu_);
  NodeUpdate latest_ ABSL_GUARDED_BY(mu_);
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  Listener* listener_ ABSL_GUARDED_BY(mu_) = nullptr;
  // Shared with the calls that are being made; null: neither.
  std::shared_ptr<LocalRendezvousClient> local_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<GrpcRendezvousClient> remote_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace hlaunch
