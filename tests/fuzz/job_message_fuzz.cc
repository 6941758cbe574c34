// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// What comes over a job's socket: a command of any version asks, and root asks the jobs of every
// user. Any bytes give a message within its limits or a refusal in one line, never a crash, and
// what was read means the same when it is sent on.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "launcher/job/socket/job_messages.h"
#include "launcher/job/socket/socket_name.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

template <typename T>
void CheckBody(const nlohmann::json& body, absl::StatusOr<T> (*read)(const nlohmann::json&)) {
  const auto message = read(body);
  if (!message.ok()) {
    HLAUNCH_CHECK(absl::IsInvalidArgument(message.status()));
    HLAUNCH_CHECK(!absl::StrContains(message.status().message(), "\n"));
    return;
  }
  const nlohmann::json sent = ToJson(*message);
  const auto again = read(*ParseObject(TextOf(sent)));
  HLAUNCH_CHECK(again.ok() && ToJson(*again) == *ParseObject(TextOf(sent)));
}

void CheckNames(absl::string_view text) {
  for (const JobSocketName& name : JobSocketsIn(text, std::nullopt)) {
    HLAUNCH_CHECK(absl::StartsWith(name.text, "hlaunch-job/"));
    HLAUNCH_CHECK(AddressOf(name).length <= sizeof(sockaddr_un));
  }
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckNames(text);
  const auto object = hlaunch::ParseObject(text);
  if (!object.ok()) return 0;
  hlaunch::CheckBody(*object, hlaunch::ReadJobHere);
  hlaunch::CheckBody(*object, hlaunch::ReadJobMeeting);
  hlaunch::CheckBody(*object, hlaunch::ReadEndRequest);
  hlaunch::CheckBody(*object, hlaunch::ReadRankQuestion);
  hlaunch::CheckBody(*object, hlaunch::ReadJobAnswer);
  hlaunch::CheckBody(*object, hlaunch::ReadJobStatus);
  return 0;
}
