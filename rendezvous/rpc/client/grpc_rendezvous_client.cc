// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/grpc_rendezvous_client.h"

#include <utility>

#include "proto/base/status_macros.h"
#include "rendezvous/rpc/client/conversation.h"

namespace hlaunch {

GrpcRendezvousClient::GrpcRendezvousClient(Options options) : options_(std::move(options)) {}

GrpcRendezvousClient::~GrpcRendezvousClient() = default;

void GrpcRendezvousClient::Join(const NodeInfo& info, const NodeUpdate& update,
                                Listener* listener) {
  HLAUNCH_CHECK(conversation_ == nullptr);
  conversation_ = std::make_unique<Conversation>(options_, info, update, listener, &contacted_);
  begun_ = conversation_.get();
}

void GrpcRendezvousClient::LedBy(const VoterMembers& places) {
  if (Conversation* const begun = begun_) begun->LedBy(places);
}

void GrpcRendezvousClient::Send(const NodeUpdate& update) {
  HLAUNCH_CHECK(conversation_ != nullptr);
  conversation_->Put(update);
}

void GrpcRendezvousClient::Answer(NodeAnswer answer) {
  HLAUNCH_CHECK(conversation_ != nullptr);
  conversation_->Put(std::move(answer));
}

void GrpcRendezvousClient::Tell(RoundWord word) {
  HLAUNCH_CHECK(conversation_ != nullptr);
  conversation_->Put(std::move(word));
}

Allowance GrpcRendezvousClient::AllowanceNow(Instant now) const {
  return conversation_ == nullptr ? Allowance() : conversation_->AllowanceNow(now);
}

}  // namespace hlaunch
