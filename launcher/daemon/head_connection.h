// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/process/tool_run.h"
#include "asio/steady_timer.hpp"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/cluster_wire/cluster_link.h"
#include "rendezvous/trust/cluster_authority.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// This host's membership in a cluster: what `hlaunch cluster join` has left in the daemon's folder,
// the connection to the head that follows from it, and the certificate, which is renewed in good
// time. The folder is looked at every two seconds, so a host can join and leave while the daemon
// runs.
//
// Belongs to the loop's thread, which outlives it.
class HeadConnection {
 public:
  struct Events {
    std::function<void()> up;                              // The head hears this host.
    std::function<void(const Envelope& order)> ordered;    // A question of the head.
    std::function<void(const std::string&)> reachable_at;  // This host's address towards it.
    std::function<void()> changed;                         // What is said of this in words.
  };
  using Done = std::function<void(absl::StatusOr<nlohmann::json>)>;

  // `folder`: /var/lib/hlaunchd.
  HeadConnection(asio::io_context& loop, std::string folder, Events events);
  ~HeadConnection();

  // Lost while there is no connection; `up` follows then.
  void Send(const Envelope& envelope);
  // Calls `done` once, with the head's answer. Errors: the head's, and
  //   Unavailable - it cannot be reached; names it.
  //   DeadlineExceeded - it did not answer.
  //   FailedPrecondition - this host is in no cluster.
  void Ask(const std::string& verb, nlohmann::json body, std::optional<ClusterUser> user,
           Done done);

  bool connected() const { return link_ != nullptr && link_->connected(); }
  // As its certificate names it; that of the kernel where it is in no cluster.
  const std::string& host() const { return host_; }
  const std::string& head() const { return head_; }  // HOST:PORT; empty: none.
  // Why there is no connection; empty: there is.
  std::string trouble() const { return connected() ? "" : trouble_; }

 private:
  void Look();
  void Open();
  absl::Status Begin();
  void Up();
  void FindAddress();
  void RenewInTime();
  void Renewed(const std::string& key, const absl::StatusOr<nlohmann::json>& answer);

  asio::io_context& loop_;
  const std::string folder_;
  const Events events_;
  asio::steady_timer look_;
  asio::steady_timer renew_;
  std::string seen_;  // What the folder was like.
  std::string host_;
  std::string head_;
  std::string trouble_;
  HostIdentity identity_;
  bool renewing_ = false;
  std::unique_ptr<ClusterLink> link_;
  std::unique_ptr<ToolRun> address_;
};

// When a host's certificate is to be renewed: after two thirds of its life, or up to a fifteenth of
// it later, each host at a time of its own. Hosts that have joined together come one by one. Pure.
std::time_t RenewalTime(const CertifiedHost& certified);

}  // namespace hlaunch
