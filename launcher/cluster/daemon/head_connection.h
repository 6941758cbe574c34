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
#include "agent/workers/process/tool_run.h"
#include "asio/steady_timer.hpp"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/net/cluster_wire/cluster_link.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// This host's membership in a cluster. It reads what `hlaunch cluster join` has left in the
// daemon's folder, keeps the connection to the head, and renews the certificate in good time. It
// looks at the folder every two seconds, so a host can join and leave while the daemon runs.
//
// Belongs to the loop's thread, which outlives it.
class HeadConnection {
 public:
  struct Events {
    std::function<void()> up;                              // The head is connected.
    std::function<void(const Envelope& order)> ordered;    // The head asks a question.
    std::function<void(const std::string&)> reachable_at;  // The host's address towards the head.
    std::function<void()> changed;  // Something that describes the membership has changed.
  };
  using Done = std::function<void(absl::StatusOr<nlohmann::json>)>;

  // `folder` is the daemon's folder, by default /var/lib/hlaunchd.
  HeadConnection(asio::io_context& loop, std::string folder, Events events);
  ~HeadConnection();

  // Sends `envelope`, which is lost while there is no connection. `up` is called once there is one.
  void Send(const Envelope& envelope);
  // Asks the head. Calls `done` once with the head's answer, but not after this object's end.
  // Errors: the head's, and
  //   Unavailable - the head cannot be reached; the message names it.
  //   DeadlineExceeded - the head did not answer.
  //   FailedPrecondition - this host is in no cluster.
  void Ask(const std::string& verb, nlohmann::json body, std::optional<ClusterUser> user,
           Done done);

  bool connected() const { return link_ != nullptr && link_->connected(); }
  // The host's name in its certificate, or the kernel's name for it if the host is in no cluster.
  const std::string& host() const { return host_; }
  const std::string& head() const { return head_; }  // HOST:PORT; empty: none.
  // Why there is no connection; empty if there is one.
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
  std::string seen_;  // The state of the folder when it was last looked at.
  std::string host_;
  std::string head_;
  std::string trouble_;
  HostIdentity identity_;
  bool renewing_ = false;
  const std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);  // Handlers check it.
  std::unique_ptr<ClusterLink> link_;
  std::unique_ptr<ToolRun> address_;
};

// Returns when a host renews its certificate: after two thirds of its life, plus up to a fifteenth
// of its life, which differs between hosts. So hosts that joined together renew one by one. Pure.
std::time_t RenewalTime(const CertifiedHost& certified);

}  // namespace hlaunch
