// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/rendezvous_server.h"

#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/base/mutex.h"
#include "rendezvous/net/guarded/guarded_sockets.h"
#include "rendezvous/net/port/front.h"
#include "rendezvous/net/port/peer_jobs.h"
#include "rendezvous/rpc/grpc_transport.h"
#include "rendezvous/rpc/rendezvous_service.h"

namespace hlaunch {
namespace {

using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
using AcceptorType = grpc::ServerBuilder::experimental_type::ExternalConnectionType;

// Refuses the calls that this release does not know. gRPC would say nothing but a number.
class UnknownCalls final : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    class Refusal final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Refusal(const std::string& call) {
        Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                            absl::StrCat("this release of hlaunch does not serve ", call,
                                         "; use the same release on both hosts")));
      }
      void OnDone() override { delete this; }
    };
    return new Refusal(context->method());
  }
};

}  // namespace

// The members are in the order of construction, and the front is destroyed first: gRPC would keep a
// connection that it gets after its shutdown open and unserved.
struct RendezvousServer::State {
  State(Jobs& jobs, const Options& options)
      : service(jobs, options.trust.none(), PeersOf(options.trust), options.patience,
                options.voters) {}

  // TLS shows in the certificate for which job a peer may speak.
  PeerJobs* PeersOf(const Trust& trust) { return trust.in_clear() ? &peers : nullptr; }

  PeerJobs peers;

  RendezvousService service;
  UnknownCalls unknown;
  std::shared_ptr<grpc::ServerCredentials> credentials;
  std::unique_ptr<Acceptor> acceptor;
  std::unique_ptr<grpc::Server> server;
  Mutex mu;
  std::unique_ptr<Front> front ABSL_GUARDED_BY(mu);
};

absl::StatusOr<std::unique_ptr<RendezvousServer>> RendezvousServer::Start(Options options,
                                                                          Jobs& jobs) {
  if (!options.trust.none() && options.trust.job()) {
    return absl::UnauthenticatedError(absl::StrCat("the token here is for job '",
                                                   *options.trust.job(),
                                                   "' of a service alone, so nobody can meet here; "
                                                   "name the host of that service, or give this "
                                                   "node the whole token"));
  }
  auto state = std::make_unique<State>(jobs, options);
  grpc::ServerBuilder builder;
  PrepareServer(&builder);
  builder.RegisterService(&state->service);
  builder.RegisterCallbackGenericService(&state->unknown);
  state->credentials = MakeServerCredentials(options.trust);
  state->acceptor = builder.experimental().AddExternalConnectionAcceptor(AcceptorType::FROM_FD,
                                                                         state->credentials);
  state->server = builder.BuildAndStart();
  if (state->server == nullptr) return absl::InternalError("gRPC refuses to serve");
  Front::Options front;
  front.grpc = [acceptor = state->acceptor.get()](UniqueFd connection,
                                                  std::shared_ptr<ConnectionGuard> guard) {
    if (guard != nullptr) GuardSocket(connection.get(), std::move(guard));
    Acceptor::NewConnectionParameters parameters;
    parameters.listener_fd = -1;
    parameters.fd = connection.Release();
    acceptor->HandleNewConnection(&parameters);
  };
  front.c10d = std::move(options.c10d);
  front.trust = options.trust;
  front.peers = state->PeersOf(options.trust);
  try {
    MutexLock lock(&state->mu);
    state->front = std::make_unique<Front>(std::move(options.listener), std::move(front));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread that accepts connections: ", error.code().message()));
  }
  return std::unique_ptr<RendezvousServer>(new RendezvousServer(std::move(state)));
}

RendezvousServer::RendezvousServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

RendezvousServer::~RendezvousServer() { Shutdown(Duration::zero()); }

void RendezvousServer::Shutdown(Duration grace) {
  std::unique_ptr<Front> front;
  {
    MutexLock lock(&state_->mu);
    front = std::move(state_->front);
  }
  if (front == nullptr) return;
  front.reset();
  state_->service.EndAll(absl::UnavailableError("the rendezvous is shutting down"));
  // gRPC takes deadlines on the wall clock.
  state_->server->Shutdown(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<std::chrono::system_clock::duration>(grace));
  state_->server.reset();  // Waits until all streams are done.
}

void RendezvousServer::EndStreams(const absl::Status& status) { state_->service.EndOpen(status); }

void RendezvousServer::EndC10d() {
  MutexLock lock(&state_->mu);
  if (state_->front != nullptr) state_->front->EndC10d();
}

size_t RendezvousServer::open_streams() const { return state_->service.open_streams(); }

}  // namespace hlaunch
