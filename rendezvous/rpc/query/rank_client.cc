// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/query/rank_client.h"

#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "rendezvous/rpc/convert.h"
#include "rendezvous/rpc/query/call_rendezvous.h"

namespace hlaunch {
namespace {

constexpr Duration kSlack = std::chrono::seconds(10);  // For the connection and for the answer.

}  // namespace

absl::StatusOr<JobAnswer> AskRanks(const RendezvousEndpoint& endpoint, absl::string_view job_id,
                                   const RankQuestion& question) {
  v1::AskRanksRequest request;
  request.set_job_id(ToUtf8(job_id, kMaxNameBytes));
  *request.mutable_question() = ToProto(question);
  v1::AskRanksResponse response;
  HLAUNCH_RETURN_IF_ERROR(CallRendezvous(
      endpoint, MonotonicClock().Now() + kSlack, question.patience + kSlack,
      "questions about ranks", [&](v1::Rendezvous::Stub& stub, grpc::ClientContext* context) {
        return stub.AskRanks(context, request, &response);
      }));
  return FromProto(response);
}

}  // namespace hlaunch
