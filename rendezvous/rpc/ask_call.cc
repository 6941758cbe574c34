// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/ask_call.h"

#include <utility>

#include "absl/status/statusor.h"
#include "proto/contract/grpc_status.h"
#include "rendezvous/rpc/convert.h"

namespace hlaunch {
namespace {

// Lives until gRPC is done with it, which is after Finish. The answer or the cancellation calls
// Finish, whichever comes first.
class AskCall final : public grpc::ServerUnaryReactor {
 public:
  AskCall(std::shared_ptr<JobRendezvous> job, const RankQuestion& question,
          v1::AskRanksResponse* response)
      : job_(std::move(job)) {
    // gRPC acts on Finish, and cancels the call, only once it has got this object.
    const auto number = job_->Ask(question, [this, response](const JobAnswer& answer) {
      *response = ToProto(answer);
      Finish(grpc::Status::OK);
    });
    if (number.ok()) {
      number_ = *number;
    } else {
      Finish(ToGrpcStatus(number.status()));
    }
  }

  void OnCancel() override {
    if (job_->GiveUp(number_)) Finish(ToGrpcStatus(absl::CancelledError("the caller has gone")));
  }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<JobRendezvous> job_;
  uint64_t number_ = 0;
};

}  // namespace

grpc::ServerUnaryReactor* BeginAskCall(std::shared_ptr<JobRendezvous> job,
                                       const RankQuestion& question,
                                       v1::AskRanksResponse* response) {
  return new AskCall(std::move(job), question, response);
}

}  // namespace hlaunch
