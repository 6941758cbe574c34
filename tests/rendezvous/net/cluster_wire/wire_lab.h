// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "proto/base/clock.h"
#include "rendezvous/net/cluster_wire/cluster_link.h"
#include "rendezvous/net/cluster_wire/cluster_server.h"
#include "rendezvous/net/cluster_wire/wire_connection.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/listen.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {

inline constexpr Duration kPatience = std::chrono::seconds(180);  // ThreadSanitizer needs 10 to 70.

// A cluster's authority and the identities that it signs. A value.
class OwnCluster {
 public:
  explicit OwnCluster(std::time_t now = std::time(nullptr))
      : now_(now), authority_(*MakeAuthority(now)) {}

  HostIdentity Head() const { return *MakeHeadIdentity(authority_, now_); }
  HostIdentity Host(const std::string& name, std::time_t lives = kCertificateLife) const {
    const HostRequest request = *MakeHostRequest(name);
    return {authority_.certificate,
            *SignHostRequest(authority_, request.request, name, now_, now_ + lives), request.key};
  }
  std::string pin() const { return KeyPinOf(authority_.certificate); }
  const Authority& authority() const { return authority_; }

 private:
  std::time_t now_;
  Authority authority_;
};

// Runs `loop`, and `other` if it is not null, until `holds`. False after kPatience.
inline bool RunUntil(asio::io_context& loop, const std::function<bool()>& holds,
                     asio::io_context* other = nullptr) {
  const Instant deadline = MonotonicClock().Now() + kPatience;
  while (!holds()) {
    if (MonotonicClock().Now() > deadline) return false;
    loop.restart();
    loop.run_one_for(std::chrono::milliseconds(10));
    if (other == nullptr) continue;
    other->restart();
    other->poll();
  }
  return true;
}

// A head that records what it is told. Belongs to the test's thread.
class RecordingHead {
 public:
  RecordingHead(asio::io_context& loop, const HostIdentity& identity, uint16_t port = 0) {
    ListeningSocket listener = *Listen("127.0.0.1", port);
    port_ = listener.port;
    ClusterServer::Events events;
    events.admits = [this](const CertifiedHost& host) { return host.host != thrown_out; };
    events.is_own = [this](const CertifiedHost& host) { return host.host == own_host; };
    events.came = [this](uint64_t peer, const std::string& host) {
      history.push_back(absl::StrCat("came ", host));
      hosts[peer] = host;
    };
    events.said = [this](uint64_t peer, Envelope envelope) {
      if (on_said) on_said(peer, envelope);
      said.emplace_back(peer, std::move(envelope));
    };
    events.left = [this](uint64_t peer) {
      history.push_back(absl::StrCat("left ", hosts[peer]));
      hosts.erase(peer);
    };
    events.stranger = [this](uint64_t id, const Envelope& question, const std::string& address) {
      stranger_address = address;
      server->Send(id, question.ask == "join"
                           ? AnswerTo(question, question.body)
                           : ErrorTo(question, absl::PermissionDeniedError("no")));
    };
    server = *ClusterServer::Start(loop, std::move(listener.fd), identity, std::move(events));
  }

  uint16_t port() const { return port_; }
  uint64_t PeerOf(const std::string& name) const {
    for (const auto& [peer, host] : hosts) {
      if (host == name) return peer;
    }
    return 0;
  }

  std::unique_ptr<ClusterServer> server;
  std::string thrown_out, own_host;
  std::map<uint64_t, std::string> hosts;
  std::vector<std::string> history;
  std::vector<std::pair<uint64_t, Envelope>> said;
  std::function<void(uint64_t, const Envelope&)> on_said;
  std::string stranger_address;

 private:
  uint16_t port_ = 0;
};

// A node daemon's link that records what it is told. Belongs to the test's thread.
class RecordingLink {
 public:
  RecordingLink(asio::io_context& loop, uint16_t port, const HostIdentity& identity,
                const std::string& host = "127.0.0.1") {
    ClusterLink::Events events;
    events.up = [this] { ++ups; };
    events.said = [this](Envelope envelope) { said.push_back(std::move(envelope)); };
    events.down = [this](const absl::Status& why) { downs.push_back(why); };
    link = std::make_unique<ClusterLink>(loop, host, port, identity, std::move(events));
  }

  std::unique_ptr<ClusterLink> link;
  int ups = 0;
  std::vector<Envelope> said;
  std::vector<absl::Status> downs;
};

// One bare connection of the wire, as client or server. Belongs to the test's thread.
class RecordingWire {
 public:
  RecordingWire(asio::io_context& loop, UniqueFd fd, TlsContext tls, bool is_server = false) {
    wire = *WireConnection::Of(loop, std::move(fd), std::move(tls));
    WireConnection::Events events;
    events.shaken = [this] { shaken = true; };
    events.said = [this](Envelope envelope) { said.push_back(std::move(envelope)); };
    events.pinged = [this] { ++pings; };
    events.ended = [this](const absl::Status& status) { ended.push_back(status); };
    wire->Begin(is_server, kMaxClusterFrame, std::move(events));
  }
  ~RecordingWire() { wire->Drop(); }

  std::shared_ptr<WireConnection> wire;
  bool shaken = false;
  int pings = 0;
  std::vector<Envelope> said;
  std::vector<absl::Status> ended;
};

inline UniqueFd ConnectTo(uint16_t port) {
  int error = 0;
  UniqueFd fd = BeginToConnect("127.0.0.1", port, &error);
  EXPECT_TRUE(fd.valid()) << error;
  return fd;
}

}  // namespace hlaunch
