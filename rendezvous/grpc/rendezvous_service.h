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
#include "proto/base/rare_log.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

class AttachStream;

// The rpcs of rendezvous.proto in front of the jobs' rendezvous.
//
// Thread-safe. `jobs` must outlive it; it must outlive the gRPC server it is registered
// with.
class RendezvousService final : public v1::Rendezvous::CallbackService {
 public:
  // `token` is what nodes must know (empty: nothing), `patience` the time for the first message
  // of a stream.
  RendezvousService(Jobs& jobs, std::string token, Duration patience);
  ~RendezvousService() override;

  // Ends every stream with `status`, once it has got its last directive; also those that come
  // later.
  void EndAll(const absl::Status& status);

  // How many streams are open.
  size_t open_streams() const;

  // The call's token is right; a wrong one is worth a rare line.
  //
  // Errors: as CheckCallToken.
  absl::Status Admit(const grpc::CallbackServerContext& context);

  grpc::ServerBidiReactor<v1::AttachRequest, v1::AttachResponse>* Attach(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ReportNodeDeath(grpc::CallbackServerContext* context,
                                            const v1::ReportNodeDeathRequest* request,
                                            v1::ReportNodeDeathResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;

 private:
  friend class AttachStream;

  // Streams that have not joined, the oldest first. Shared with the alarm.
  struct Lobby;

  void Enlist(const std::shared_ptr<AttachStream>& stream);
  void Strike(const std::shared_ptr<AttachStream>& stream);
  // The first node from another host that joins a job without a token is worth a warning.
  void WarnIfOpen(const NodeInfo& info);

  Jobs& jobs_;
  const std::string token_;
  const std::shared_ptr<Lobby> lobby_;

  mutable Mutex mu_;
  std::set<std::shared_ptr<AttachStream>> streams_ ABSL_GUARDED_BY(mu_);
  absl::Status ended_ ABSL_GUARDED_BY(mu_);  // OK until EndAll.
  RareLog refusals_ ABSL_GUARDED_BY(mu_);
  bool warned_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace hlaunch
