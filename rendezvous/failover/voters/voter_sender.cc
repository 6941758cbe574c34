// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/failover/voters/voter_sender.h"

#include <pthread.h>

#include <chrono>
#include <system_error>
#include <utility>

#include "grpcpp/client_context.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/rpc/grpc_transport.h"
#include "rendezvous/voter/wire/voter_convert.h"

namespace hlaunch {
namespace {

constexpr size_t kMostWays = 32;  // For a group, and for some former members.
constexpr int kMostUnderWay = 4;  // Messages to one address.
constexpr std::chrono::seconds kPatience(1);
constexpr std::chrono::seconds kPatienceForRecord(3);

}  // namespace

// Its numbers belong to the mutex of the sender.
struct VoterSender::Way {
  Way(const VoterAddress& place, const Trust& trust, const std::string& host)
      : line(place.literal, place.port, trust, host),
        stub(v1::Rendezvous::NewStub(line.channel())) {}
  const Line line;
  const std::unique_ptr<v1::Rendezvous::Stub> stub;
  int under_way = 0;
  bool silent = false;  // A call was not answered in time.
};

struct VoterSender::Call {
  virtual ~Call() = default;
  // The call has ended. Called with no lock held.
  virtual void End() {}

  std::shared_ptr<Way> way;
  grpc::ClientContext context;
  grpc::Status status;
};

struct VoterSender::Message final : VoterSender::Call {
  v1::PassWitnessMessageResponse response;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::PassWitnessMessageResponse>> reader;
};

struct VoterSender::Question final : VoterSender::Call {
  void End() override {
    if (status.ok()) return take(std::move(*response.mutable_record()));
    take(FromGrpcStatus(status));
  }

  TakeRecord take;
  v1::GetWitnessRecordResponse response;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::GetWitnessRecordResponse>> reader;
};

VoterSender::~VoterSender() {
  std::thread thread;
  {
    MutexLock lock(&mu_);
    for (Call* call : under_way_) call->context.TryCancel();
    thread = std::move(thread_);
  }
  queue_.Shutdown();
  if (thread.joinable()) {
    thread.join();
  } else {
    EndCalls();  // gRPC wants an empty queue.
  }
}

// Returns the way to `to`, where one more call is under way now; null if that cannot be. Ways that
// end have to end without the lock.
std::shared_ptr<VoterSender::Way> VoterSender::Begin(const VoterMember& to, Ways* former) {
  if (!StartThread()) return nullptr;
  if (ways_.size() >= kMostWays && !ways_.contains(to.address)) {
    for (auto& [address, way] : ways_) former->push_back(std::move(way));
    ways_.clear();
  }
  std::shared_ptr<Way>& way = ways_[to.address];
  // TCP may deliver what it holds for a host that was cut off only two minutes later. A new
  // connection works as soon as the network does.
  if (way == nullptr || way->silent) {
    former->push_back(
        std::exchange(way, std::make_shared<Way>(SplitAddress(to.address), trust_, to.name)));
  }
  if (way->under_way >= kMostUnderWay) return nullptr;
  ++way->under_way;
  return way;
}

void VoterSender::Send(const VoterMember& to, v1::PassWitnessMessageRequest message) {
  Ways former;  // They end here once the lock is free.
  MutexLock lock(&mu_);
  std::shared_ptr<Way> way = Begin(to, &former);
  if (way == nullptr) return;
  auto* const call = new Message;
  call->way = std::move(way);
  under_way_.insert(call);
  call->context.set_deadline(std::chrono::system_clock::now() + kPatience);
  call->reader = call->way->stub->AsyncPassWitnessMessage(&call->context, message, &queue_);
  call->reader->Finish(&call->response, &call->status, static_cast<Call*>(call));
}

void VoterSender::Ask(const VoterMember& from, const v1::GetWitnessRecordRequest& question,
                      TakeRecord take) {
  {
    Ways former;
    MutexLock lock(&mu_);
    if (std::shared_ptr<Way> way = Begin(from, &former); way != nullptr) {
      auto* const call = new Question;
      call->way = std::move(way);
      call->take = std::move(take);
      under_way_.insert(call);
      call->context.set_deadline(std::chrono::system_clock::now() + kPatienceForRecord);
      call->reader = call->way->stub->AsyncGetWitnessRecord(&call->context, question, &queue_);
      call->reader->Finish(&call->response, &call->status, static_cast<Call*>(call));
      return;
    }
  }
  take(absl::ResourceExhaustedError("too many calls are under way"));
}

// A host without room for a thread loses its messages, as it would without a network.
bool VoterSender::StartThread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "voter-calls");
      EndCalls();
    });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void VoterSender::EndCalls() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    call->End();
    MutexLock lock(&mu_);
    under_way_.erase(call.get());
    --call->way->under_way;
    if (call->status.error_code() == grpc::DEADLINE_EXCEEDED) call->way->silent = true;
  }
}

}  // namespace hlaunch
