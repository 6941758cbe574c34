// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/envelope.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

using absl::string_view;
using nlohmann::json;

constexpr size_t kMaxVerb = 64;
constexpr size_t kMaxUserName = 256;
// An error's message is cut when it is sent. A byte that is no UTF-8 is replaced by three bytes.
constexpr size_t kMaxErrorSent = 4096;
constexpr size_t kMaxErrorTaken = 3 * kMaxErrorSent;

json ToJson(const ClusterUser& user) {
  return {{"name", user.name}, {"uid", user.uid}, {"admin", user.admin}, {"on_head", user.on_head}};
}

json ToJson(const absl::Status& error) {
  return {{"code", absl::StatusCodeToString(error.code())},
          {"message", WithoutZeroBytes(error.message().substr(0, kMaxErrorSent))}};
}

absl::StatusOr<ClusterUser> ReadUser(const json& object) {
  ClusterUser user;
  JsonFields fields(object, "the user");
  fields.Text("name", &user.name, kMaxUserName);
  int64_t uid = -1;
  fields.Number("uid", &uid, 0, UINT32_MAX);
  if (uid < 0) fields.Refuse("uid", "is missing");
  fields.Flag("admin", &user.admin);
  fields.Flag("on_head", &user.on_head);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  user.uid = static_cast<uint32_t>(uid);
  return user;
}

// A code that only a later version knows is an error all the same.
absl::StatusCode CodeNamed(string_view name) {
  for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    const auto candidate = static_cast<absl::StatusCode>(code);
    if (absl::StatusCodeToString(candidate) == name) return candidate;
  }
  return absl::StatusCode::kUnknown;
}

// Returns the error in `object`. A fault of `object` goes to `outer`.
absl::Status ReadError(const json& object, JsonFields* outer) {
  std::string code, message;
  JsonFields fields(object, "the error");
  fields.Text("code", &code, kMaxVerb);
  fields.Text("message", &message, kMaxErrorTaken);
  outer->Merge(fields.status());
  return absl::Status(CodeNamed(code), message);
}

bool IsVerb(const std::string& verb) {
  return !verb.empty() && std::all_of(verb.begin(), verb.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; });
}

void ReadVerb(const char* name, JsonFields* fields, std::string* verb) {
  fields->Text(name, verb, kMaxVerb);
  if (fields->Has(name) && !IsVerb(*verb)) fields->Refuse(name, "must be a verb");
}

void CheckKind(const Envelope& envelope, JsonFields* fields) {
  if (!envelope.ask.empty() && !envelope.tell.empty()) {
    fields->Refuse("ask", "and tell exclude each other");
  }
  if (envelope.tell.empty() && !fields->Has("id")) fields->Refuse("id", "is missing");
  if (envelope.is_answer() && !fields->Has("body") && !fields->Has("error")) {
    fields->Refuse("body", "is missing");
  }
  if (!envelope.is_answer() && fields->Has("error")) {
    fields->Refuse("error", "belongs to an answer alone");
  }
}

}  // namespace

Envelope Question(uint64_t id, string_view verb, json body) {
  Envelope envelope;
  envelope.ask = std::string(verb);
  envelope.id = id;
  envelope.body = std::move(body);
  return envelope;
}

Envelope NewsOf(string_view verb, json body) {
  Envelope envelope;
  envelope.tell = std::string(verb);
  envelope.body = std::move(body);
  return envelope;
}

Envelope AnswerTo(const Envelope& question, json body) {
  Envelope envelope;
  envelope.id = question.id;
  envelope.body = std::move(body);
  return envelope;
}

Envelope ErrorTo(const Envelope& question, const absl::Status& why) {
  Envelope envelope;
  envelope.id = question.id;
  envelope.error = why;
  return envelope;
}

std::string EncodeEnvelope(const Envelope& envelope) {
  json object = json::object();
  if (envelope.tell.empty()) object["id"] = envelope.id;
  if (!envelope.ask.empty()) object["ask"] = envelope.ask;
  if (!envelope.tell.empty()) object["tell"] = envelope.tell;
  if (envelope.user.has_value()) object["user"] = ToJson(*envelope.user);
  if (envelope.error.ok()) {
    object["body"] = envelope.body;
  } else {
    object["error"] = ToJson(envelope.error);
  }
  return TextOf(object);
}

absl::StatusOr<Envelope> DecodeEnvelope(string_view text) {
  HLAUNCH_ASSIGN_OR_RETURN(json object, ParseObject(text));
  Envelope envelope;
  JsonFields fields(object, "a message");
  ReadVerb("ask", &fields, &envelope.ask);
  ReadVerb("tell", &fields, &envelope.tell);
  fields.Number("id", &envelope.id);
  if (const json* user = fields.Object("user")) {
    const absl::StatusOr<ClusterUser> read = ReadUser(*user);
    fields.Merge(read.status());
    if (read.ok()) envelope.user = *read;
  }
  if (const json* error = fields.Object("error")) envelope.error = ReadError(*error, &fields);
  CheckKind(envelope, &fields);
  const bool has_body = fields.Object("body") != nullptr;
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  if (has_body) envelope.body = std::move(object["body"]);
  return envelope;
}

}  // namespace hlaunch
