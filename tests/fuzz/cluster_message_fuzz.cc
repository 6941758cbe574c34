// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Messages between the processes of a user's own cluster. Any bytes give the same frames in any
// pieces. They give messages within their limits or a refusal in one line, never a crash. A message
// that was read means the same when it is sent on.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/envelope.h"
#include "proto/cluster/frame.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

using nlohmann::json;

constexpr size_t kMaxFrame = 1000;

void CheckRefusal(const absl::Status& status) {
  HLAUNCH_CHECK(absl::IsInvalidArgument(status));
  HLAUNCH_CHECK(!status.message().empty() && !absl::StrContains(status.message(), "\n"));
}

template <typename T>
void CheckBody(const json& body, absl::StatusOr<T> (*read)(const json&)) {
  const auto message = read(body);
  if (!message.ok()) return CheckRefusal(message.status());
  const auto again = read(*ParseObject(TextOf(ToJson(*message))));
  HLAUNCH_CHECK(again.ok() && *again == *message);
}

void CheckBodies(const json& body) {
  CheckBody(body, ReadJobRequest);
  CheckBody(body, ReadPartView);
  CheckBody(body, ReadJobView);
  CheckBody(body, ReadMeetingAnswer);
  CheckBody(body, ReadDeviceFact);
  CheckBody(body, ReadHostFacts);
  CheckBody(body, ReadPartTold);
  CheckBody(body, ReadPartOrder);
  CheckBody(body, ReadSignalOrder);
  CheckBody(body, ReadForgetOrder);
  CheckBody(body, ReadLogQuestion);
  CheckBody(body, ReadLogAnswer);
  CheckBody(body, ReadJobsQuestion);
  CheckBody(body, ReadJobQuestion);
  CheckBody(body, ReadStopQuestion);
  CheckBody(body, ReadDrainQuestion);
  CheckBody(body, ReadHostView);
}

void CheckEnvelope(absl::string_view text) {
  const auto envelope = DecodeEnvelope(text);
  if (!envelope.ok()) return CheckRefusal(envelope.status());
  const auto again = DecodeEnvelope(EncodeEnvelope(*envelope));
  HLAUNCH_CHECK(again.ok());
  HLAUNCH_CHECK(again->ask == envelope->ask && again->tell == envelope->tell);
  HLAUNCH_CHECK(again->user == envelope->user);
  HLAUNCH_CHECK(again->error.code() == envelope->error.code());
  if (envelope->tell.empty()) HLAUNCH_CHECK(again->id == envelope->id);
  if (!envelope->error.ok()) return;
  HLAUNCH_CHECK(again->body == envelope->body);
  CheckBodies(envelope->body);
}

// The frames of a stream that comes in pieces of `piece` bytes, up to the first fault.
std::vector<std::string> Frames(absl::string_view bytes, size_t piece, bool* faulty) {
  FrameReader reader(kMaxFrame);
  std::vector<std::string> all;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    const auto frames = reader.Take(bytes.substr(0, piece));
    *faulty = !frames.ok();
    if (*faulty) {
      CheckRefusal(frames.status());
      break;
    }
    all.insert(all.end(), frames->begin(), frames->end());
    HLAUNCH_CHECK(reader.waiting() < kMaxFrame + 4);
  }
  return all;
}

void CheckFrames(absl::string_view bytes) {
  bool whole_is_faulty = false, single_is_faulty = false;
  const std::vector<std::string> whole = Frames(bytes, bytes.size(), &whole_is_faulty);
  const std::vector<std::string> single = Frames(bytes, 1, &single_is_faulty);
  HLAUNCH_CHECK(whole_is_faulty == single_is_faulty);
  // Frames that came in the same piece as a fault are not returned.
  HLAUNCH_CHECK(whole == single || (whole_is_faulty && whole.empty()));
  for (const std::string& frame : single) CheckEnvelope(frame);
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckFrames(text);
  hlaunch::CheckEnvelope(text);
  if (const auto object = hlaunch::ParseObject(text); object.ok()) hlaunch::CheckBodies(*object);
  return 0;
}
