// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/start_message.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/version.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr size_t kLengthBytes = 4;
constexpr int kMaxGrace = 1'000'000;

void AppendLength(size_t length, std::string* out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(length >> shift & 0xff));
  }
}

size_t ReadLength(string_view bytes) {
  size_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return length;
}

void AppendField(string_view name, string_view value, std::string* out) {
  AppendLength(name.size() + 1 + value.size(), out);
  absl::StrAppend(out, name, "=", value);
}

struct TextField {
  const char* name;
  std::string StartMessage::*value;
};
constexpr TextField kTexts[] = {{"version", &StartMessage::version},
                                {"nonce", &StartMessage::nonce},
                                {"token", &StartMessage::token},
                                {"directory", &StartMessage::directory}};
struct ListField {
  const char* name;
  std::vector<std::string> StartMessage::*values;
};
constexpr ListField kLists[] = {{"candidate", &StartMessage::candidates},
                                {"option", &StartMessage::options},
                                {"script", &StartMessage::script},
                                {"environment", &StartMessage::environment},
                                {"limit", &StartMessage::limits}};

absl::Status TakeField(string_view name, string_view value, StartMessage* message) {
  // The kernel ends words and variables at a zero byte.
  if (absl::StrContains(value, string_view("\0", 1))) {
    return InvalidArgumentError(
        absl::StrCat("the field ", PrintableLine(name), " holds a zero byte"));
  }
  for (const TextField& field : kTexts) {
    if (name == field.name) message->*field.value = std::string(value);
  }
  for (const ListField& field : kLists) {
    if (name == field.name) (message->*field.values).emplace_back(value);
  }
  if (name == "stdin") message->takes_stdin = value == "1";
  if (name == "umask" && !ParseInt(value, 0, 0777, &message->umask)) {
    return InvalidArgumentError("the field umask is no mask");
  }
  if (name == "grace" && !ParseInt(value, 0, kMaxGrace, &message->grace_s)) {
    return InvalidArgumentError("the field grace is no number of seconds");
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeStart(const StartMessage& message) {
  std::string fields;
  for (const TextField& field : kTexts) AppendField(field.name, message.*field.value, &fields);
  for (const ListField& field : kLists) {
    for (const std::string& value : message.*field.values) {
      AppendField(field.name, value, &fields);
    }
  }
  if (message.umask >= 0) AppendField("umask", absl::StrCat(message.umask), &fields);
  AppendField("grace", absl::StrCat(message.grace_s), &fields);
  AppendField("stdin", message.takes_stdin ? "1" : "0", &fields);
  std::string whole(kStartMagic);
  AppendLength(fields.size(), &whole);
  return whole + fields;
}

absl::StatusOr<size_t> StartBytes(string_view head) {
  if (head.size() != kStartMagic.size() + kLengthBytes || !absl::StartsWith(head, kStartMagic)) {
    return InvalidArgumentError(
        "what came on standard input is no start of hlaunch; `hlaunch agent` is for hlaunch's own "
        "use, see --hosts");
  }
  const size_t size = ReadLength(head.substr(kStartMagic.size()));
  if (size <= kMaxStartBytes) return size;
  return InvalidArgumentError(
      absl::StrCat("a start of ", size, " bytes; at most ", kMaxStartBytes, " are taken"));
}

absl::StatusOr<StartMessage> DecodeStart(string_view fields) {
  StartMessage message;
  for (size_t count = 0; !fields.empty(); ++count) {
    if (count == kMaxStartFields) {
      return InvalidArgumentError(absl::StrCat("more than ", kMaxStartFields, " fields"));
    }
    if (fields.size() < kLengthBytes) return InvalidArgumentError("a field's length is cut off");
    const size_t size = ReadLength(fields);
    fields.remove_prefix(kLengthBytes);
    if (size > fields.size()) return InvalidArgumentError("a field is cut off");
    const string_view field = fields.substr(0, size);
    fields.remove_prefix(size);
    const size_t equals = field.find('=');
    if (equals == string_view::npos) return InvalidArgumentError("a field has no name");
    HLAUNCH_RETURN_IF_ERROR(TakeField(field.substr(0, equals), field.substr(equals + 1), &message));
  }
  if (message.nonce.empty() || absl::StrContains(message.nonce, " ")) {
    return InvalidArgumentError("the start has no nonce");
  }
  if (message.script.empty()) return InvalidArgumentError("the start names no script");
  return message;
}

std::string EncodeFrame(FrameKind kind, string_view bytes) {
  std::string frame(1, static_cast<char>(kind));
  AppendLength(bytes.size(), &frame);
  absl::StrAppend(&frame, bytes);
  return frame;
}

absl::StatusOr<std::vector<Frame>> TakeFrames(std::string& buffer) {
  std::vector<Frame> frames;
  string_view rest = buffer;
  while (rest.size() >= kFrameHead) {
    const char kind = rest[0];
    const size_t size = ReadLength(rest.substr(1));
    if (!absl::StrContains("iskd", string_view(&kind, 1)) || size > kMaxFrame) {
      return InvalidArgumentError("what came on standard input is no frame of hlaunch");
    }
    if (rest.size() - kFrameHead < size) break;
    frames.push_back({static_cast<FrameKind>(kind), std::string(rest.substr(kFrameHead, size))});
    rest.remove_prefix(kFrameHead + size);
  }
  buffer.erase(0, buffer.size() - rest.size());
  return frames;
}

std::string MakeAgentLine(string_view nonce, string_view word, string_view rest) {
  return absl::StrCat(kAgentMagic, " ", nonce, " ", word, " ", rest, "\n");
}

bool ReadAgentLine(string_view line, string_view nonce, AgentLine* found) {
  const std::string head = absl::StrCat(kAgentMagic, " ", nonce, " ");
  const size_t begin = line.find(head);
  if (begin == string_view::npos) return false;
  const std::pair<string_view, string_view> parts =
      absl::StrSplit(line.substr(begin + head.size()), absl::MaxSplits(' ', 1));
  *found = {std::string(line.substr(0, begin)), std::string(parts.first),
            std::string(parts.second)};
  return true;
}

std::string WireVersion() {
  const std::string text = VersionText();  // "0.1.0 (commit 16e9676f0c12 with changes, …)".
  return absl::StrReplaceAll(text.substr(0, text.find(',')), {{" (commit ", "+"}, {" ", "-"}});
}

}  // namespace hlaunch
