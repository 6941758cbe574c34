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

// The content of one frame: a question, an answer, or news, which has no answer. All is pure.
//
//   {"id": 7, "ask": "submit", "user": {…}, "body": {…}}
//   {"id": 7, "body": {…}}                                    the answer
//   {"id": 7, "error": {"code": "NOT_FOUND", "message": "…"}}  or why there is none
//   {"tell": "part", "body": {…}}

namespace hlaunch {

// The user who asks. The node daemon that the user talks to learns it from the kernel. A value.
struct ClusterUser {
  std::string name;
  uint32_t uid = 0;
  bool admin = false;    // Root, or a member of the group in hlaunchd.conf.
  bool on_head = false;  // The user asks on the head's host, as the head decides.

  bool operator==(const ClusterUser&) const = default;
};

// The content of a frame. A value.
struct Envelope {
  std::string ask;   // The verb of a question; else empty.
  std::string tell;  // The verb of news; else empty.
  // The id of a question and of its answer. An error with id 0 answers everything that was asked,
  // and the connection has ended.
  uint64_t id = 0;
  std::optional<ClusterUser> user;  // Set if a user asks.
  nlohmann::json body = nlohmann::json::object();
  absl::Status error;  // Set in an answer that is an error.

  bool is_answer() const { return ask.empty() && tell.empty(); }
};

Envelope Question(uint64_t id, absl::string_view verb, nlohmann::json body);
Envelope NewsOf(absl::string_view verb, nlohmann::json body);
Envelope AnswerTo(const Envelope& question, nlohmann::json body);
Envelope ErrorTo(const Envelope& question, const absl::Status& why);

// The JSON text, without the head of a frame.
std::string EncodeEnvelope(const Envelope& envelope);

// Errors:
//   InvalidArgument - it is no envelope; the message says why.
absl::StatusOr<Envelope> DecodeEnvelope(absl::string_view json);

}  // namespace hlaunch
