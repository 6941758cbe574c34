// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/cluster/head/head_metrics.h"
#include "launcher/cluster/head/head_relay.h"
#include "launcher/cluster/head/job_polls.h"
#include "launcher/cluster/head/trust_office.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/cluster/head/head_table.h"
#include "rendezvous/cluster/membership/trust_folder.h"
#include "rendezvous/net/cluster_wire/cluster_server.h"

namespace hlaunch {

// The running head: it gives the table what hosts and users say, and carries out the results. All
// changes of one turn of the loop are written together, before any answer or order that follows
// from them is sent.
//
// Belongs to the loop's thread; `loop` outlives it.
class HeadService {
 public:
  struct Options {
    std::string join_at;  // Where hosts find the head, HOST:PORT.
    OwnLimits limits;
    // Called if the head cannot write its decisions. It sends nothing more, and must end.
    std::function<void(const absl::Status&)> failed;
  };

  // Errors:
  //   FailedPrecondition, NotFound - `folder` is not a head's folder, or a file in it is not valid.
  //   Unavailable - the folder cannot be written.
  //   The errors of ClusterServer::Start.
  static absl::StatusOr<std::unique_ptr<HeadService>> Start(asio::io_context& loop,
                                                            UniqueFd listener, TrustFolder folder,
                                                            Options options);

  std::string Metrics() const;
  std::string Status() const { return HeadStatus(table_); }

 private:
  using Answer = absl::StatusOr<nlohmann::json>;

  HeadService(asio::io_context& loop, TrustFolder folder, HeadRecord record, Options options);
  absl::Status Begin(UniqueFd listener);
  ClusterServer::Events Events();

  void Came(uint64_t id, const std::string& host);
  void Left(uint64_t id);
  void Said(uint64_t id, const Envelope& envelope);
  void TakeStranger(uint64_t id, const Envelope& question, const std::string& address);

  void TakeNews(const std::string& host, uint64_t id, const Envelope& news);
  void TakeQuestion(const std::string& host, uint64_t id, const Envelope& question);
  void AnswerOf(uint64_t id, const Envelope& question, const ClusterUser& user);
  Answer Token(const ClusterUser& user);
  Answer ThrowOut(const ClusterUser& user, const Envelope& question);
  void Poll(uint64_t id, const Envelope& question, const ClusterUser& user);
  void RelayLog(uint64_t id, const Envelope& question, const ClusterUser& user);
  void Reply(uint64_t id, const Envelope& question, const Answer& answer);

  // Runs in the loop's next turn if this object still exists.
  void Later(void (HeadService::*what)());
  void Soon();  // Runs Flush in the next turn.
  void Flush();
  void SendOrder(const HeadOrder& order);
  void AnswerPolls();
  void SayWhatChanged(const HeadChanges& changes);
  void Tick();
  void RenewOwn();  // Gives the server a new certificate if it is time.
  uint64_t PeerOf(const std::string& host) const;  // 0: the host is not connected.

  asio::io_context& loop_;
  const TrustFolder folder_;
  const Options options_;
  HeadTable table_;
  std::unique_ptr<TrustOffice> office_;
  std::map<uint64_t, std::string> peers_;  // The host of each peer.
  std::map<std::string, uint64_t> by_host_;
  HeadRelay relay_;
  JobPolls polls_;
  PlaceTimes times_;
  std::vector<std::pair<uint64_t, Envelope>> replies_;  // Sent once all changes are written.
  std::map<uint64_t, ClusterJobState> told_;  // The state of each job that was logged last.
  const std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);  // Handlers check it.
  bool soon_ = false;
  bool failed_ = false;
  std::optional<Instant> renew_again_;  // When to try to renew again; unset: no try has failed.
  asio::steady_timer second_;
  std::unique_ptr<ClusterServer> server_;
};

}  // namespace hlaunch
