// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/head/head_metrics.h"
#include "launcher/head/head_relay.h"
#include "launcher/head/job_polls.h"
#include "launcher/head/trust_office.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/envelope.h"
#include "rendezvous/cluster_wire/cluster_server.h"
#include "rendezvous/head/head_table.h"
#include "rendezvous/joining/trust_folder.h"

namespace hlaunch {

// The head at work: hands what hosts and users say to the table, and carries out what follows. What
// comes in one turn of the loop is written together, before anything of it is answered or ordered.
//
// Belongs to the loop's thread; `loop` outlives it.
class HeadService {
 public:
  struct Options {
    std::string join_at;  // Where hosts find the head, HOST:PORT.
    OwnLimits limits;
    // The head cannot keep what it decides: nothing more leaves, and it is to end.
    std::function<void(const absl::Status&)> failed;
  };

  // Errors:
  //   FailedPrecondition, NotFound - `folder` is no head's, or a file in it is none.
  //   Unavailable - it cannot be written.
  //   As ClusterServer::Start.
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

  void Later(void (HeadService::*what)());  // In the loop's next turn, if this is still there.
  void Soon();                              // Flush, then.
  void Flush();
  void SendOrder(const HeadOrder& order);
  void AnswerPolls();
  void SayWhatChanged(const HeadChanges& changes);
  void Tick();
  uint64_t PeerOf(const std::string& host) const;  // 0: it is not there.

  asio::io_context& loop_;
  const TrustFolder folder_;
  const Options options_;
  HeadTable table_;
  std::unique_ptr<TrustOffice> office_;
  std::map<uint64_t, std::string> peers_;  // Their hosts.
  std::map<std::string, uint64_t> by_host_;
  HeadRelay relay_;
  JobPolls polls_;
  PlaceTimes times_;
  std::vector<std::pair<uint64_t, Envelope>> replies_;  // Once all is written.
  std::map<uint64_t, ClusterJobState> told_;            // What the log says of each job.
  const std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);  // What waits looks.
  bool soon_ = false;
  bool failed_ = false;
  asio::steady_timer second_;
  std::unique_ptr<ClusterServer> server_;
};

}  // namespace hlaunch
