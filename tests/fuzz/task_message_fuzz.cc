// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Messages between the tasks of a node, which come over a socket of the host. Any bytes are refused
// in one line or are words, which mean the same when they are sent on.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "launcher/environment/tasks/task_message.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

void CheckRefusal(const absl::Status& status) {
  HLAUNCH_CHECK(absl::IsInvalidArgument(status));
  HLAUNCH_CHECK(!status.message().empty() && !absl::StrContains(status.message(), "\n"));
}

void CheckMessage(absl::string_view bytes) {
  const auto message = DecodeTaskMessage(bytes);
  if (!message.ok()) return CheckRefusal(message.status());
  const std::string sent = EncodeTaskMessage(*message);
  const auto size = TaskMessageBytes(sent.substr(0, kTaskMessageHead));
  HLAUNCH_CHECK(size.ok() && *size == sent.size() - kTaskMessageHead);
  const auto again = DecodeTaskMessage(absl::string_view(sent).substr(kTaskMessageHead));
  HLAUNCH_CHECK(again.ok() && *again == *message);
  const auto start = StartOf(*message);
  if (!start.ok()) return CheckRefusal(start.status());
  HLAUNCH_CHECK(!start->argv.empty());
  const auto same = StartOf(MessageOf(*start));
  HLAUNCH_CHECK(same.ok() && same->argv == start->argv && same->env == start->env &&
                same->directory == start->directory && same->umask == start->umask);
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hlaunch;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto count = TaskMessageBytes(bytes.substr(0, kTaskMessageHead)); count.ok()) {
    HLAUNCH_CHECK(*count <= kMaxTaskMessage);
  } else {
    CheckRefusal(count.status());
  }
  CheckMessage(bytes);
  return 0;
}
