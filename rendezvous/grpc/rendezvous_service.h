// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/base/mutex.h"
#include "rendezvous/front/peer_jobs.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/round/round.h"
#include "rendezvous/witness_wire/witness_post.h"

namespace hlaunch {

class AttachStream;

// The rpcs of rendezvous.proto in front of the jobs' rendezvous.
//
// Thread-safe. `jobs` must outlive it; it must outlive the gRPC server it is registered
// with.
class RendezvousService final : public v1::Rendezvous::CallbackService {
 public:
  // `open` says that nodes had to prove nothing to get here, `peers` what they have proved in their
  // greeting (null: nobody greets), `patience` is the time for the first message of a stream.
  // `witnesses` is who is a witness here, and must outlive it; null: nobody.
  RendezvousService(Jobs& jobs, bool open, const PeerJobs* peers, Duration patience,
                    WitnessPost* witnesses);
  ~RendezvousService() override;

  // Ends every stream with `status`, once it has got its last directive; also those that come
  // later.
  void EndAll(const absl::Status& status);

  // The same for those that are open now.
  void EndOpen(const absl::Status& status);

  // How many streams are open.
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
  grpc::ServerUnaryReactor* AskRanks(grpc::CallbackServerContext* context,
                                     const v1::AskRanksRequest* request,
                                     v1::AskRanksResponse* response) override;

  grpc::ServerUnaryReactor* DrainNode(grpc::CallbackServerContext* context,
                                      const v1::DrainNodeRequest* request,
                                      v1::DrainNodeResponse* response) override;

 private:
  friend class AttachStream;

  // Streams that have not joined, the oldest first. Shared with the alarm.
  struct Lobby;

  // Whether the caller may do what not everybody may who can reach an open rendezvous; `why` begins
  // with what that is, for people.
  absl::Status CheckTrusted(const grpc::CallbackServerContext& context,
                            absl::string_view why) const;
  void Enlist(const std::shared_ptr<AttachStream>& stream);
  void Strike(const std::shared_ptr<AttachStream>& stream);
  // The first node from another host that joins a job without a token is worth a warning.
  void WarnIfOpen(const NodeInfo& info);

  Jobs& jobs_;
  const bool open_;
  const PeerJobs* const peers_;
  WitnessPost* const witnesses_;
  const std::shared_ptr<Lobby> lobby_;

  mutable Mutex mu_;
  std::set<std::shared_ptr<AttachStream>> streams_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);  // OK until EndAll.
  bool warned_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace hlaunch
