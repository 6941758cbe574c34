// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/duration.pb.h"
#include "hlaunch/v1/job.pb.h"
#include "hlaunch/v1/rendezvous.pb.h"
#include "proto/base/clock.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/drained_node.h"
#include "rendezvous/round/values/limits.h"
#include "rendezvous/round/values/round.h"

// Converts between the plain values of rendezvous/round/values/round.h and the messages of
// job.proto.
//
// ToProto never fails: it makes text valid UTF-8 and shortens what is meant for people (reasons,
// tails, failures beyond the limit). FromProto trusts nothing: a value that is out of its range is
// InvalidArgument, and the message names the field.

namespace hlaunch {

// A peer with another major version is refused. Raised when old and new versions can no longer
// talk.
inline constexpr int kProtocolMajor = 3;

v1::NodeInfo ToProto(const NodeInfo& info);
v1::NodeUpdate ToProto(const NodeUpdate& update);
v1::Directive ToProto(const Directive& directive);
v1::Policy ToProto(const JobPolicy& policy);
v1::JobStatus ToProto(const JobStatus& status);
v1::WorkerFailure ToProto(const WorkerFailure& failure);
v1::PastRound ToProto(const PastRound& past);
v1::Outcome ToProto(const Outcome& outcome);
v1::RankQuestion ToProto(const RankQuestion& question);
v1::NodeQuestion ToProto(const NodeQuestion& question);
// Leaves out the job's id, which the caller sets.
v1::DrainNodeRequest ToProto(const DrainRequest& request);
v1::NodeAnswer ToProto(const NodeAnswer& answer);
v1::RoundWord ToProto(const RoundWord& word);
v1::AskRanksResponse ToProto(const JobAnswer& answer);

// Errors:
//   FailedPrecondition - the peer's protocol major differs; the message names both.
absl::StatusOr<NodeInfo> FromProto(const v1::NodeInfo& info);
absl::StatusOr<NodeUpdate> FromProto(const v1::NodeUpdate& update);
absl::StatusOr<Directive> FromProto(const v1::Directive& directive);
absl::StatusOr<JobPolicy> FromProto(const v1::Policy& policy);
absl::StatusOr<JobStatus> FromProto(const v1::JobStatus& status);
absl::StatusOr<WorkerFailure> FromProto(const v1::WorkerFailure& failure);
absl::StatusOr<PastRound> FromProto(const v1::PastRound& past);
absl::StatusOr<Outcome> FromProto(const v1::Outcome& outcome);
absl::StatusOr<RankQuestion> FromProto(const v1::RankQuestion& question);
absl::StatusOr<DrainRequest> FromProto(const v1::DrainNodeRequest& request);
absl::StatusOr<NodeQuestion> FromProto(const v1::NodeQuestion& question);
absl::StatusOr<NodeAnswer> FromProto(const v1::NodeAnswer& answer);
absl::StatusOr<RoundWord> FromProto(const v1::RoundWord& word);
absl::StatusOr<JobAnswer> FromProto(const v1::AskRanksResponse& answer);

// Errors:
//   InvalidArgument - `value` is not in the range; the message names `field`.
absl::Status InRange(absl::string_view field, int64_t value, int64_t low, int64_t high);

google::protobuf::Duration DurationToProto(Duration duration);
// Errors:
//   InvalidArgument - the duration is negative or longer than a year; the message names `field`.
absl::StatusOr<Duration> DurationFromProto(absl::string_view field,
                                           const google::protobuf::Duration& in);

// Returns `text` with U+FFFD for each byte that is not UTF-8, cut between characters to
// `max_bytes`.
std::string ToUtf8(absl::string_view text, size_t max_bytes);

}  // namespace hlaunch
