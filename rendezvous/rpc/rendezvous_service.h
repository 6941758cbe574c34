// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/clock.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/net/port/peer_jobs.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/rpc/attach_stream.h"
#include "rendezvous/voter/wire/voter_post.h"

namespace hlaunch {

// Implements the rpcs of rendezvous.proto on top of the jobs' rendezvous.
//
// Thread-safe. `jobs` must outlive the service, and the service must outlive the gRPC server it is
// registered with.
class RendezvousService final : public v1::Rendezvous::CallbackService {
 public:
  // `open`: nodes had to prove nothing to get here. `peers`: what they have proved in their
  // greeting; null if they do not greet. `patience`: the time limit for the first message of a
  // stream. `voters`: the voter here, which must outlive the service; null if there is none.
  RendezvousService(Jobs& jobs, bool open, const PeerJobs* peers, Duration patience,
                    VoterPost* voters);
  ~RendezvousService() override;

  // Ends every stream with `status` after its last directive, also the streams that come later.
  void EndAll(const absl::Status& status);

  // Does the same for the streams that are open now.
  void EndOpen(const absl::Status& status);

  // Returns the number of open streams.
  size_t open_streams() const;

  grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ReportNodeDeath(grpc::CallbackServerContext* context,
                                            const v1::ReportNodeDeathRequest* request,
                                            v1::ReportNodeDeathResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* PassWitnessMessage(grpc::CallbackServerContext* context,
                                               const v1::PassWitnessMessageRequest* request,
                                               v1::PassWitnessMessageResponse* response) override;
  grpc::ServerUnaryReactor* GetWitnessRecord(grpc::CallbackServerContext* context,
                                             const v1::GetWitnessRecordRequest* request,
                                             v1::GetWitnessRecordResponse* response) override;
  grpc::ServerUnaryReactor* AskRanks(grpc::CallbackServerContext* context,
                                     const v1::AskRanksRequest* request,
                                     v1::AskRanksResponse* response) override;

  grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext* context,
                                      const v1::DrainNodeRequest* request,
                                      v1::DrainNodeResponse* response) override;

 private:
  friend  // Streams that have not joined, the oldest first. Shared with the alarm.
      struct Lobby;

  // Checks whether the caller may do what an open rendezvous does not let every caller do. The
  // message begins with `why`, which says for people what that is.
  absl::Status CheckTrusted(const grpc::CallbackServerContext& context,
                            absl::string_view why) const;
  void Enlist(const std::shared_ptr<AttachStream>& stream);
  void Strike(const std::shared_ptr<AttachStream>& stream);
  // Warns when the first node from another host joins a job without a token.
  void WarnIfOpen(const NodeInfo& info);

  Jobs& jobs_;
  const bool open_;
  const PeerJobs* const peers_;
  VoterPost* const voters_;
  const AttachServices services_;

  mutable Mutex mu_;
  std::set<std::shared_ptr<AttachStream>> streams_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);  // OK until EndAll.
  bool warned_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace hlaunch
