// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Any bytes on an agent's stdin give a start, frames or a line of text, never a crash. A start that
// was read means the same when it is sent on. Users' texts about hosts give names that no program
// takes for an option, or a line.

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/hosts/start_message.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kHead = 8;

void CheckRefusal(const absl::Status& status) {
  HLAUNCH_CHECK(absl::IsInvalidArgument(status));
  HLAUNCH_CHECK(!status.message().empty() && !absl::StrContains(status.message(), "\n"));
}

void CheckStart(absl::string_view bytes) {
  const auto size = StartBytes(bytes.substr(0, kHead));
  if (!size.ok()) return CheckRefusal(size.status());
  HLAUNCH_CHECK(*size <= kMaxStartBytes);
  const auto message = DecodeStart(bytes.substr(kHead, *size));
  if (!message.ok()) return CheckRefusal(message.status());
  const std::string sent = EncodeStart(*message);
  const auto again = DecodeStart(absl::string_view(sent).substr(kHead));
  HLAUNCH_CHECK(again.ok() && EncodeStart(*again) == sent);
}

void CheckFrames(std::string bytes) {
  const size_t size = bytes.size();
  const auto frames = TakeFrames(bytes);
  if (!frames.ok()) return CheckRefusal(frames.status());
  size_t taken = 0;
  for (const Frame& frame : *frames) taken += kFrameHead + frame.bytes.size();
  HLAUNCH_CHECK(taken + bytes.size() == size);
}

void CheckHosts(const absl::StatusOr<std::vector<TargetHost>>& hosts) {
  if (!hosts.ok()) return CheckRefusal(hosts.status());
  for (const TargetHost& host : *hosts) {
    HLAUNCH_CHECK(!host.name.empty() && host.name[0] != '-' && host.user.find('-') != 0);
    HLAUNCH_CHECK(host.name.find_first_of(" ;$`'\"\\\n") == std::string::npos);
    HLAUNCH_CHECK(!host.slots.has_value() || *host.slots > 0);
  }
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckStart(text);
  hlaunch::CheckFrames(std::string(text));
  constexpr size_t kShort = 200;  // Limits the product of the brackets.
  hlaunch::CheckHosts(hlaunch::ParseHosts(text.substr(0, kShort)));
  hlaunch::CheckHosts(hlaunch::ParseHostfile(text.substr(0, kShort), "f"));
  hlaunch::AgentLine line;
  hlaunch::ReadAgentLine(text, "n", &line);
  return 0;
}
