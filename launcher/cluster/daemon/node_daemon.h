// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "asio/steady_timer.hpp"
#include "launcher/cluster/daemon/daemon_config.h"
#include "launcher/cluster/daemon/daemon_words.h"
#include "launcher/cluster/daemon/head_connection.h"
#include "launcher/cluster/daemon/host_facts.h"
#include "launcher/cluster/daemon/local_server.h"
#include "launcher/cluster/daemon/peer_user.h"
#include "launcher/cluster/tasks/log_answers.h"
#include "launcher/cluster/tasks/parts.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

class ServiceManager;

// The node daemon: it passes users' questions to the head, carries out the head's orders here, and
// tells the head how that goes.
//
// Belongs to the loop's thread; the loop and the service manager outlive it.
class NodeDaemon {
 public:
  NodeDaemon(asio::io_context& loop, const DaemonOptions& options, const DaemonConfig& config,
             ServiceManager& manager);

  // Finds the parts that are on this host, and begins to serve at `listener`.
  //
  // Errors:
  //   FailedPrecondition - the parts cannot be kept here; the message says why.
  absl::Status Begin(UniqueFd listener);

 private:
  void Answer(const Envelope& question, LocalServer::Done done);
  void Obey(const Envelope& order);
  void TellAll();
  void LookAtHostAgain();
  void ShowStatus();
  std::string StatusText() const;
  nlohmann::json Here() const;

  asio::io_context& loop_;
  const DaemonConfig config_;
  const HostPlaces places_;
  ServiceManager& manager_;
  asio::steady_timer look_;
  HostFacts facts_;
  bool ready_ = false;
  std::string shown_;  // The status that the service manager shows.
  Parts parts_;
  LogAnswers logs_;
  PeerUsers users_;
  HeadConnection head_;
  std::unique_ptr<LocalServer> server_;
};

}  // namespace hlaunch
