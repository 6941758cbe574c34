// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hlaunch/v1/store.grpc.pb.h"
#include "rendezvous/front/peer_jobs.h"
#include "rendezvous/job/jobs.h"
#include "rendezvous/store/memory_store.h"

namespace hlaunch {

// Implements the rpcs of store.proto on the jobs' shared keys. No call holds a thread while it
// waits.
//
// Thread-safe. `jobs` must outlive the service, and the service must outlive the gRPC server it is
// registered with.
class StoreService final : public v1::Store::CallbackService {
 public:
  // `peers` as for RendezvousService.
  StoreService(Jobs& jobs, const PeerJobs* peers) : jobs_(jobs), peers_(peers) {}

  grpc::ServerUnaryReactor* SetKeys(grpc::CallbackServerContext* context,
                                    const v1::SetKeysRequest* request,
                                    v1::SetKeysResponse* response) override;
  grpc::ServerUnaryReactor* GetKeys(grpc::CallbackServerContext* context,
                                    const v1::GetKeysRequest* request,
                                    v1::GetKeysResponse* response) override;
  grpc::ServerUnaryReactor* AwaitKeys(grpc::CallbackServerContext* context,
                                      const v1::AwaitKeysRequest* request,
                                      v1::AwaitKeysResponse* response) override;
  grpc::ServerUnaryReactor* CheckKeys(grpc::CallbackServerContext* context,
                                      const v1::CheckKeysRequest* request,
                                      v1::CheckKeysResponse* response) override;
  grpc::ServerUnaryReactor* AddToKey(grpc::CallbackServerContext* context,
                                     const v1::AddToKeyRequest* request,
                                     v1::AddToKeyResponse* response) override;
  grpc::ServerUnaryReactor* CompareAndSetKey(grpc::CallbackServerContext* context,
                                             const v1::CompareAndSetKeyRequest* request,
                                             v1::CompareAndSetKeyResponse* response) override;
  grpc::ServerUnaryReactor* AppendToKey(grpc::CallbackServerContext* context,
                                        const v1::AppendToKeyRequest* request,
                                        v1::AppendToKeyResponse* response) override;
  grpc::ServerUnaryReactor* DeleteKey(grpc::CallbackServerContext* context,
                                      const v1::DeleteKeyRequest* request,
                                      v1::DeleteKeyResponse* response) override;
  grpc::ServerUnaryReactor* CountKeys(grpc::CallbackServerContext* context,
                                      const v1::CountKeysRequest* request,
                                      v1::CountKeysResponse* response) override;
  grpc::ServerUnaryReactor* ListKeys(grpc::CallbackServerContext* context,
                                     const v1::ListKeysRequest* request,
                                     v1::ListKeysResponse* response) override;
  grpc::ServerUnaryReactor* MeetAtKey(grpc::CallbackServerContext* context,
                                      const v1::MeetAtKeyRequest* request,
                                      v1::MeetAtKeyResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchKeysResponse>* WatchKeys(
      grpc::CallbackServerContext* context, const v1::WatchKeysRequest* request) override;

 private:
  absl::StatusOr<std::shared_ptr<MemoryStore>> Open(const grpc::CallbackServerContext& context,
                                                    const v1::Caller& caller);

  // Answers a call at once; `act` fills the response.
  template <typename Request, typename Act>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Request& request,
                                   Act act);

  Jobs& jobs_;
  const PeerJobs* const peers_;
};

}  // namespace hlaunch
