// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "rendezvous/job/rendezvous_client.h"

namespace hlaunch {

// Returns the duration in seconds, as in "2.5", for people.
std::string SecondsText(Duration duration);

// Reports to a listener each change of the contact once. Belongs to the client's thread.
class ContactReports {
 public:
  explicit ContactReports(RendezvousClient::Listener* listener) : listener_(listener) {}

  // If there are `several` candidates, each may have its own trouble, until one connects.
  void Report(bool connected, const std::string& detail, bool several);

 private:
  RendezvousClient::Listener* const listener_;
  std::vector<std::pair<bool, std::string>> made_ = {{}};  // Those that are not repeated.
};

// Why the client ends without having been connected, or after the loss limit.
struct LostContact {
  bool contacted = false;   // The rendezvous was there before.
  bool answered = false;    // It has answered something, at least "not yet".
  bool unresolved = false;  // No name has had an address.
  std::string endpoints;
  Duration limit = {};
  std::string trouble;  // The latest; may be empty.
  std::string another;  // What a rendezvous has said that has begun anew; may be empty.
};

// Returns the error for a listener. Pure.
absl::Status StatusOf(const LostContact& lost);

}  // namespace hlaunch
