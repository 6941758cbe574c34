// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/node_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kMagic = "hlm1";
constexpr size_t kNumberBytes = 4;
constexpr size_t kMostWorkers = 1 << 20;  // For one node, whatever it says.

void PutNumber(std::string* out, size_t number) {
  for (size_t i = 0; i < kNumberBytes; ++i) out->push_back(static_cast<char>(number >> 8 * i));
}

void PutSizedText(std::string* out, absl::string_view text) {
  PutNumber(out, text.size());
  absl::StrAppend(out, text);
}

// Reads encoded values from the start of a text. After the first missing value it stays bad.
class Cursor {
 public:
  explicit Cursor(absl::string_view text) : rest_(text) {}

  size_t Number() {
    if (rest_.size() < kNumberBytes) return Fail();
    size_t number = 0;
    for (size_t i = 0; i < kNumberBytes; ++i) {
      number |= size_t{static_cast<uint8_t>(rest_[i])} << 8 * i;
    }
    rest_.remove_prefix(kNumberBytes);
    return number;
  }

  std::string Text() { return Bytes(Number()); }

  std::string Bytes(size_t size) {
    if (size > rest_.size()) size = Fail();
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  size_t Fail() {
    good_ = false;
    rest_ = {};
    return 0;
  }

  absl::string_view rest_;
  bool good_ = true;
};

NodeMessage TakeMessage(Cursor& cursor) {
  NodeMessage message;
  if (cursor.Bytes(kMagic.size()) != kMagic) {
    cursor.Bytes(~size_t{0});
    return message;
  }
  message.nproc = static_cast<int>(std::min(cursor.Number(), kMostWorkers));
  message.kvs_name = cursor.Text();
  message.absent = cursor.Text();
  const size_t pairs = cursor.Number();
  for (size_t i = 0; i < pairs && cursor.good(); ++i) {
    std::string key = cursor.Text();
    std::string value = cursor.Text();
    message.pairs.emplace_back(std::move(key), std::move(value));
  }
  return message;
}

}  // namespace

std::string EncodeMessage(const NodeMessage& message) {
  std::string out(kMagic);
  PutNumber(&out, static_cast<size_t>(message.nproc));
  PutSizedText(&out, message.kvs_name);
  PutSizedText(&out, message.absent);
  PutNumber(&out, message.pairs.size());
  for (const auto& [key, value] : message.pairs) {
    PutSizedText(&out, key);
    PutSizedText(&out, value);
  }
  return out;
}

absl::StatusOr<NodeMessages> DecodeMessages(absl::string_view text, int nodes) {
  Cursor cursor(text);
  NodeMessages messages;
  for (int node = 0; node < nodes && cursor.good(); ++node) messages.push_back(TakeMessage(cursor));
  if (!cursor.at_end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("what came of ", nodes, " nodes for their MPI programs is damaged"));
  }
  return messages;
}

}  // namespace hlaunch
