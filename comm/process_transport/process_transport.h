// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "comm/connection/acceptor.h"
#include "comm/process_transport/event_poll.h"
#include "comm/process_transport/failure_record.h"
#include "comm/process_transport/message_receiver.h"
#include "comm/process_transport/message_sender.h"
#include "comm/process_transport/peer.h"
#include "comm/process_transport/peer_connections.h"
#include "comm/process_transport/wait_plan.h"
#include "comm/transport/transport.h"
#include "proto/base/mutex.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// How many TCP streams carry a large message; see tcp_connection.h.
inline constexpr int kTcpStreams = 4;

struct ProcessTransportOptions {
  std::string name = "default";  // The group's name; its keys in the store begin with it.
  std::string address;           // An IP literal of this host that the other ranks can reach.
  bool shared_memory = true;     // False: TCP inside a host, too.
  SingleCopy single_copy = SingleCopy::kUnlessSlow;  // For large messages inside a host.
  int streams = kTcpStreams;                         // TCP streams for a large message.
  int local_ranks = 1;      // Ranks of this host that are known; the transport finds more.
  std::string secret = {};  // kSecretSize bytes that only the ranks of the round have; empty: none.
  Round round = 0;          // Ranks of another round are refused. 0: not known.
};

// Connects ranks that are processes: by shared memory on the same host, by TCP between hosts. A
// connection has one direction. A rank opens it to a peer when it first sends a message to this
// peer or waits for one from it. The store has the address of each rank. The transport has no
// thread of its own.
//
// Both ends of a connection first prove that they have the secret of the round; see greeting.h. If
// a second process proves to be the same rank, the group fails with both addresses in the message.
//
// A failure is also written to the store, so that a rank that finds another rank gone can say why
// it went away. A rank whose time is up writes which rank it waited for, and asks that rank to do
// the same, so that messages name the rank at the end of the chain. The keys are "hlaunch/comm/",
// the group's name, and a rank's number, "failure", "waits" or "search".
class ProcessTransport : public Transport {
 public:
  // Does not wait for the other ranks. `store` outlives the transport. No other group of the same
  // name may have used the store.
  //
  // Errors:
  //   InvalidArgument - `address` is not a literal of this host.
  //   Unavailable, ResourceExhausted - as Store::Set; or this process is out of descriptors.
  static absl::StatusOr<std::unique_ptr<ProcessTransport>> Create(
      Store& store, Rank rank, int size, const ProcessTransportOptions& options);

  // Tells the other ranks that this one leaves. Messages that they still wait for from this rank
  // become errors there.
  ~ProcessTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override { return peers_.size(); }
  void Start(Outgoing* message) override;
  void Start(Incoming* message) override;
  void Enter(const Call& call, uint64_t number) override { receiver_.Enter(call, number); }
  absl::Status Progress(const Message& message, Instant until) override;
  absl::Status End(Failure why) override { return FailGroup(std::move(why)); }
  absl::Status GiveUp(const Message& message) override;
  void Poke() override;
  std::string host() const override { return host_; }
  const Failure* failure() const override { return failure_.status.ok() ? nullptr : &failure_; }
  void Abort(const std::string& why) override;
  void SayGoodbye(const std::string& why) override { goodbye_ = why; }

 private:
  ProcessTransport(Store& store, Rank rank, int size, const ProcessTransportOptions& options,
                   Acceptor acceptor, EventPoll poll);

  // Moves the messages that `message` may depend on; returns whether any was moved.
  bool Move(const Message& message);
  // Connects missing peers, takes messages that other ranks wait to hand over, and then sleeps
  // until there is an event.
  absl::Status Sleep(const Message& message, Instant until);
  // The same without sleeping, for a caller that only asks now and then whether `message` is done.
  absl::Status Attend(const Message& message);

  absl::StatusOr<bool> ConnectMissing(const Message& message, Instant until);
  absl::Status Connect(Peer& peer, const Message& message, Instant until);
  absl::Status HandleRefusal(Peer& peer, const Message& message);
  void ContinueDialing(Peer& peer);
  absl::StatusOr<std::optional<RankAddress>> LookUp(Peer& peer, Instant until);
  void AcceptConnections();

  bool AllHaveLeft() const;
  absl::Status CheckNotLeft(const Message& message);

  int HandleEvents(int millis);
  void HandleWake();
  void HandleOut(Peer& peer);
  void ReadOutNotices(Peer& peer);
  void ReadInNotices(Peer& peer);
  void ReadNoticesReadAhead();
  void NoteGone(Peer& peer);
  bool HandleNotices(Peer& peer, const std::vector<Notice>& notices, bool* left);

  Failure InVain(const Message& message);
  void Ask(Rank peer);
  void Answer(const Message& message);
  Failure FollowWaits(const Failure& failure);
  absl::Status FailGroup(Failure failure);
  void SetFailure(Failure failure);

  const Rank rank_;
  const std::string name_;
  const std::string host_;
  const int local_ranks_;
  const int cores_;
  WaitPlan plan_;
  Peers peers_;
  EventPoll poll_;
  PeerConnections connections_;
  MessageSender sender_;
  MessageReceiver receiver_;
  FailureRecord record_;
  Failure failure_;
  std::string goodbye_;
  const Message* awaited_ = nullptr;  // The message that Progress waits for.
  bool asked_ = false;                // Another rank asked whom this one waits for.
  bool answered_ = false;

  std::atomic<bool> poked_{false};
  Mutex mu_;
  std::optional<std::string> abort_reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
