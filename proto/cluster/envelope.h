// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

// What one frame holds: a question, an answer, or news that nobody answers. All is pure.
//
//   {"id": 7, "ask": "submit", "user": {…}, "body": {…}}
//   {"id": 7, "body": {…}}                                    the answer
//   {"id": 7, "error": {"code": "NOT_FOUND", "message": "…"}}  or why there is none
//   {"tell": "part", "body": {…}}

namespace hlaunch {

// Who asks, as the node daemon that he talks to has it from the kernel. A value.
struct ClusterUser {
  std::string name;
  uint32_t uid = 0;
  bool admin = false;    // Root, or of the group that hlaunchd.conf names.
  bool on_head = false;  // He asks on the head's own host. The head decides that, not the daemon.

  bool operator==(const ClusterUser&) const = default;
};

// A value.
struct Envelope {
  std::string ask;                  // A question's verb; empty: it is none.
  std::string tell;                 // The verb of news; empty: they are none.
  uint64_t id = 0;                  // Of a question and its answer; an error that says 0 answers
                                    // whatever was asked, and the connection has ended.
  std::optional<ClusterUser> user;  // Who asks, where it is a user.
  nlohmann::json body = nlohmann::json::object();
  absl::Status error;  // Of an answer.

  bool is_answer() const { return ask.empty() && tell.empty(); }
};

Envelope Question(uint64_t id, absl::string_view verb, nlohmann::json body);
Envelope News(absl::string_view verb, nlohmann::json body);
Envelope AnswerTo(const Envelope& question, nlohmann::json body);
Envelope ErrorTo(const Envelope& question, const absl::Status& why);

// Without the head of a frame.
std::string EncodeEnvelope(const Envelope& envelope);

// Errors:
//   InvalidArgument - it is none; the message says why.
absl::StatusOr<Envelope> DecodeEnvelope(absl::string_view json);

}  // namespace hlaunch
