// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"
#include "rendezvous/job/job_rendezvous.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/net/port/peer_jobs.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/rpc/grpc_transport.h"
#include "rendezvous/rpc/pending_response.h"
#include "rendezvous/rpc/stream_lobby.h"
#include "rendezvous/voter/wire/voter_post.h"

namespace hlaunch {

class AttachStream;

// What the streams of a service share.
struct AttachServices {
  Jobs& jobs;
  const PeerJobs* peers = nullptr;  // As of RendezvousService, like `voters`.
  VoterPost* voters = nullptr;
  std::shared_ptr<StreamLobby> lobby;
  std::function<void(const std::shared_ptr<AttachStream>&)> on_done;
  std::function<void(const NodeInfo&)> on_joined;  // A node has joined to take part.
};

// One agent's stream: a reactor for gRPC, a session for the rendezvous. Both own it: the service
// until gRPC is done with it, the rendezvous until the node is detached.
//
// Thread-safe. Reading belongs to OnReadDone and, after all reads, OnDone. Writes and the end go
// through Pump: the thread that finds the stream idle starts the next operation, so at most one is
// under way and a slow client costs one directive.
class AttachStream final : public grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>,
                           public JobRendezvous::Session,
                           public StreamLobby::Guest,
                           public std::enable_shared_from_this<AttachStream> {
 public:
  // gRPC keeps `context` for as long as the stream lives.
  AttachStream(const AttachServices& services, const grpc::CallbackServerContext& context)
      : services_(services), context_(context), peer_(PeerAddress(context.peer())) {}

  void Begin();

  void End(const absl::Status& status) override;

  // From the rendezvous.
  void OnDirective(const Directive& directive) override;
  void OnProbe() override;
  void OnQuestion(const NodeQuestion& question) override;
  void OnWord(const RoundWord& word) override;
  void OnEnd(const absl::Status& status) override { End(status); }

  // From gRPC.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { End(absl::CancelledError("the stream broke")); }
  void OnDone() override;

 private:
  // Unpacks the message and makes one call to the rendezvous. An error ends the stream.
  absl::Status Take();

  // Returns how old the request is at most: it was made after the last response that the node had
  // read. Zero if the node does not say which that was.
  Duration AgeOfRequest();

  // A node that has sent kFinished gets OK, even from a rendezvous that shuts down because it
  // waited only for this message.
  void TakeLastWord(const NodeUpdate& update);
  absl::Status Join();

  // A node that comes to a voter that stands by is told where the others are.
  absl::Status CheckLeads();

  // Every message is answered: that is how the node knows it was heard.
  void Answer();
  void LeaveLobby();
  void Leave();
  void Pump();

  const AttachServices& services_;
  const grpc::CallbackServerContext& context_;
  const std::string peer_;                   // The peer's address; empty if unknown.
  std::optional<StreamLobby::Place> guest_;  // Until the first message.
  v1::AttachRequest request_;
  std::shared_ptr<JobRendezvous> job_;  // Null until joined; set before the job knows the session.
  std::string node_id_;                 // Set like job_.
  Incarnation incarnation_ = 0;
  bool last_word_ = false;  // The node said kFinished.
  uint64_t read_ = 0;       // Messages that were read; only for the reading side.

  Mutex mu_;
  v1::AttachResponse response_;  // Belongs to the thread that set busy_.
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  PendingResponse pending_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
