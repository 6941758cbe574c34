// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/attach_call.h"

#include <algorithm>
#include <utility>

#include "proto/contract/grpc_status.h"
#include "rendezvous/net/socket/route.h"
#include "rendezvous/rpc/convert.h"

namespace hlaunch {

using Event = CallEvents::Event;

bool IsRefusal(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kInvalidArgument:
      return true;
    default:
      return false;
  }
}

AttachCall::AttachCall(const std::string& address, const EndpointCandidate& candidate,
                       const Trust& trust, CallEvents* events, Instant now)
    : line_(address, candidate.port, trust, candidate.name),
      own_address_(LocalAddressTowards(address).value_or("")),
      stub_(v1::Rendezvous::NewStub(line_.channel())),
      rpc_(stub_->PrepareAsyncAttach(&context_, events->queue())),
      heard_(now) {
  rpc_->StartCall(CallEvents::Tag(Event::kStarted));
  ++in_flight_;
}

bool AttachCall::TakeIn(Event event, bool ok, Instant now) {
  --in_flight_;
  if (event == Event::kStarted || event == Event::kWritten) ready_ = ok;
  if (event != Event::kRead || !ok) return false;
  heard_ = now;
  ++read_;
  welcome_ = welcome_ || response_.has_policy();
  return true;
}

void AttachCall::GoOn(Event event, bool ok, bool more) {
  if (event != Event::kStarted && event != Event::kRead) return;
  if (ok && more) {
    rpc_->Read(&response_, CallEvents::Tag(Event::kRead));
    ++in_flight_;
  } else if (!std::exchange(ending_, true)) {
    rpc_->Finish(&status_, CallEvents::Tag(Event::kEnded));
    ++in_flight_;
  }
}

std::optional<Instant> AttachCall::CountAnswered() {
  // The rendezvous answers, so it took at least the join.
  const uint64_t answered = std::max<uint64_t>(1, response_.heard());
  std::optional<Instant> last;
  while (answered_ < answered && !unanswered_.empty()) {
    last = unanswered_.front();
    unanswered_.pop_front();
    ++answered_;
  }
  return last;
}

void AttachCall::Write(const NodeInfo& info, const Outbox::Message& message, Instant now,
                       Duration next_sign) {
  request_.Clear();
  if (!joined_) {
    *request_.mutable_join() = ToProto(info);
    if (info.address.empty()) request_.mutable_join()->set_address(own_address_);
  }
  if (message.version != sent_) {
    *request_.mutable_update() = ToProto(message.update);
  } else if (message.answer) {
    *request_.mutable_answer() = ToProto(*message.answer);
  } else if (message.word) {
    *request_.mutable_word() = ToProto(*message.word);
  } else if (message.closing) {
    half_closed_ = true;
    rpc_->WritesDone(CallEvents::Tag(Event::kHalfClosed));
    ++in_flight_;
    return;
  } else if (now < speaks_at_) {
    return;
  }
  request_.set_seen(read_);
  joined_ = true;
  sent_ = message.version;
  speaks_at_ = now + next_sign;
  unanswered_.push_back(now);
  ready_ = false;
  rpc_->Write(request_, CallEvents::Tag(Event::kWritten));
  ++in_flight_;
}

void AttachCall::Cancel(bool left) {
  cancelled_ = true;
  left_ = left;
  context_.TryCancel();
}

bool AttachCall::ended_by_answer() const { return IsAnswer(status_); }

}  // namespace hlaunch
