// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "hlaunch/v1/rendezvous.pb.h"
#include "proto/base/mutex.h"
#include "rendezvous/trust/trust.h"
#include "rendezvous/witness/group.h"

namespace hlaunch {

// Sends messages between witnesses, each in a call of its own. A message that cannot be delivered
// within a second is lost, and the next one goes over a new connection. A message is also lost if
// too many are on the way to the same address.
//
// Thread-safe; never blocks.
class WitnessSender {
 public:
  explicit WitnessSender(Trust trust) : trust_(std::move(trust)) {}

  void Send(const WitnessMember& to, v1::PassWitnessMessageRequest message);

 private:
  struct Way;

  const Trust trust_;
  Mutex mu_;
  // By address. Shared with the calls that are under way.
  std::map<std::string, std::shared_ptr<Way>> ways_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
