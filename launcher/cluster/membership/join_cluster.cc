// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/join_cluster.h"

#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/wall_time.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/json_fields.h"
#include "rendezvous/cluster/membership/join_registrar.h"
#include "rendezvous/cluster/membership/join_token.h"
#include "rendezvous/net/trust/cluster_authority.h"

namespace hlaunch {
namespace {

constexpr int kAttempts = 3;  // An answer may get lost; the head answers the same question again.
constexpr std::time_t kStrangeClock = 60;
constexpr size_t kMaxPem = 64 << 10;

absl::StatusOr<HostIdentity> ReadAnswer(const nlohmann::json& answer, const std::string& key) {
  HostIdentity read;
  JsonFields fields(answer, "the head's answer");
  fields.Text("certificate", &read.certificate, kMaxPem);
  fields.Text("authority", &read.authority, kMaxPem);
  if (!fields.status().ok()) return absl::InternalError(fields.status().message());
  read.key = key;
  return read;
}

// `now` is this host's time.
absl::Status CheckClock(const CertifiedHost& made, std::time_t now) {
  const std::string clocks =
      absl::StrCat("this host's clock says ", WallTime(int64_t{now} * 1000),
                   " and the head's says ", WallTime(int64_t{made.issued} * 1000));
  if (now < made.issued - kClockTolerance || now >= made.expires) {
    return absl::FailedPreconditionError(absl::StrCat(
        clocks, "; set the clock that is wrong and join with a new token: hlaunch cluster token"));
  }
  if (std::abs(now - made.issued) > kStrangeClock) {
    LogWarning(absl::StrCat(clocks, "; that is borne, but one of the two is wrong"));
  }
  return absl::OkStatus();
}

// Adds a hint unless the head itself explains the error.
absl::Status Explained(const absl::Status& why, const Endpoint& head) {
  if (absl::IsUnavailable(why)) {
    return absl::UnavailableError(
        absl::StrCat(why.message(), "; does hlaunch-head run there, and does a firewall let port ",
                     head.port, " through?"));
  }
  if (absl::IsUnauthenticated(why)) {
    return absl::FailedPreconditionError(absl::StrCat(
        why.message(), "; the token is of another cluster than the head there, or this host's ",
        "clock is wrong"));
  }
  return why;
}

absl::StatusOr<nlohmann::json> AskPatiently(const AskHeadFn& ask, const Endpoint& head,
                                            const std::string& pin, const Envelope& question) {
  absl::StatusOr<nlohmann::json> answer = ask(head, pin, question);
  for (int i = 1; i < kAttempts && absl::IsUnavailable(answer.status()); ++i) {
    answer = ask(head, pin, question);
  }
  return answer;
}

}  // namespace

absl::Status JoinCluster(const ClusterPaths& paths, const JoinWish& wish, const AskHeadFn& ask,
                         const std::function<std::time_t()>& clock) {
  if (!IsClusterHostName(wish.host)) {
    return absl::InvalidArgumentError(
        "this host's name cannot be used in a cluster; choose another one with --name");
  }
  HLAUNCH_ASSIGN_OR_RETURN(const JoinToken token, ReadJoinToken(wish.token));
  if (IsMember(paths) && PinOf(paths) != token.pin) {
    return absl::AlreadyExistsError(
        absl::StrCat("this host belongs to another cluster already, that of ", HeadOf(paths),
                     "; to leave that one: hlaunch cluster leave"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(const HostRequest request, MakeHostRequest(wish.host));
  const JoinQuestion question = {wish.token, wish.host, request.request};
  const absl::StatusOr<nlohmann::json> answer =
      AskPatiently(ask, wish.head, token.pin, Question(1, "join", ToJson(question)));
  if (!answer.ok()) return Explained(answer.status(), wish.head);
  HLAUNCH_ASSIGN_OR_RETURN(const HostIdentity identity, ReadAnswer(*answer, request.key));
  HLAUNCH_ASSIGN_OR_RETURN(const CertifiedHost made, CheckHostIdentity(identity));
  if (made.host != wish.host || KeyPinOf(identity.authority) != token.pin) {
    return absl::InternalError("the head has answered with the certificate of another host");
  }
  HLAUNCH_RETURN_IF_ERROR(CheckClock(made, clock()));
  return KeepMember(paths, identity, HostPort(wish.head.host, wish.head.port));
}

}  // namespace hlaunch
