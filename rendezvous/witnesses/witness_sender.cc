// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/witnesses/witness_sender.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "grpcpp/client_context.h"
#include "hlaunch/v1/rendezvous.grpc.pb.h"
#include "rendezvous/grpc/grpc_transport.h"
#include "rendezvous/witness_wire/witness_convert.h"

namespace hlaunch {
namespace {

constexpr size_t kMostWays = 32;  // For a group, and for some former members.
constexpr int kMostUnderWay = 4;  // Messages to one address.
constexpr std::chrono::seconds kPatience(1);

}  // namespace

struct WitnessSender::Way {
  Way(const WitnessAddress& place, const Trust& trust, const std::string& host)
      : line(place.literal, place.port, trust, host),
        stub(v1::Rendezvous::NewStub(line.channel())) {}
  const Line line;
  const std::unique_ptr<v1::Rendezvous::Stub> stub;
  std::atomic<int> under_way = 0;
  std::atomic<bool> silent = false;  // A call was not answered in time.
};

void WitnessSender::Send(const WitnessMember& to, v1::PassWitnessMessageRequest message) {
  std::shared_ptr<Way> way;
  {
    MutexLock lock(&mu_);
    if (ways_.size() >= kMostWays && !ways_.contains(to.address)) ways_.clear();
    std::shared_ptr<Way>& place = ways_[to.address];
    // TCP may deliver what it holds for a host that was cut off only two minutes later. A new
    // connection works as soon as the network does.
    if (place == nullptr || place->silent) {
      place = std::make_shared<Way>(SplitAddress(to.address), trust_, to.name);
    }
    way = place;
  }
  if (way->under_way >= kMostUnderWay) return;
  struct Call {
    std::shared_ptr<Way> way;
    grpc::ClientContext context;
    v1::PassWitnessMessageRequest request;
    v1::PassWitnessMessageResponse response;
  };
  auto call = std::make_shared<Call>();
  call->way = way;
  call->request = std::move(message);
  call->context.set_deadline(std::chrono::system_clock::now() + kPatience);
  ++way->under_way;
  way->stub->async()->PassWitnessMessage(&call->context, &call->request, &call->response,
                                         [call](const grpc::Status& status) {
                                           if (status.error_code() == grpc::DEADLINE_EXCEEDED)
                                             call->way->silent = true;
                                           --call->way->under_way;
                                         });
}

}  // namespace hlaunch
