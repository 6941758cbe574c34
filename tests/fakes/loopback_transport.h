// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <vector>

#include "comm/transport/transport.h"

namespace hlaunch {

// Connects ranks that are threads of one process. Start copies an outgoing message, which is then
// done.
class LoopbackTransport : public Transport {
 public:
  // Makes one transport for each rank. They share their state, which the last one frees. If
  // `per_host` is not 0, every `per_host` ranks say that they are on a host of their own.
  static std::vector<std::unique_ptr<LoopbackTransport>> MakeGroup(int size, int per_host = 0);

  ~LoopbackTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override;
  void Start(Outgoing* message) override;
  void Start(Incoming* message) override;
  void Enter(const Call& call, uint64_t number) override;
  absl::Status Progress(const Message& message, Instant until) override;
  absl::Status End(Failure why) override;
  absl::Status GiveUp(const Message& message) override;
  void Poke() override;
  const Failure* failure() const override;
  void Abort(const std::string& why) override;
  void SayGoodbye(const std::string& why) override;

  std::string host() const override;

  // Ends this rank as if its process had been killed.
  void Vanish();

 private:
  struct World;
  LoopbackTransport(std::shared_ptr<World> world, Rank rank);

  // Shared by all ranks of the group.
  const std::shared_ptr<World> world_;
  const Rank rank_;
  std::vector<Incoming*> receiving_;
  Message entered_;
  Failure failure_;
  bool vanished_ = false;
};

}  // namespace hlaunch
