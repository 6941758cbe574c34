// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/access/vouch_messages.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"

namespace hlaunch {
namespace {

constexpr char kGreeting = 'g';
constexpr char kQuestion = 'q';
constexpr char kAnswer = 'a';

void PutNumber(std::string* out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(number >> (8 * i)));
}

void PutAddress(std::string* out, const StoreAddress& address) {
  out->append(address.begin(), address.end());
}

// Reads fields off the front of a message. What is beyond the end reads as zero and is `short_of`.
class Fields {
 public:
  explicit Fields(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t Number(int size) {
    uint64_t number = 0;
    for (int i = 0; i < size; ++i) number |= uint64_t{Byte()} << (8 * i);
    return number;
  }
  StoreAddress Address() {
    StoreAddress address{};
    std::generate(address.begin(), address.end(), [this] { return Byte(); });
    return address;
  }
  bool short_of() const { return short_; }
  absl::string_view rest() const { return bytes_; }

 private:
  uint8_t Byte() {
    short_ = short_ || bytes_.empty();
    if (short_) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }

  absl::string_view bytes_;
  bool short_ = false;
};

VouchGreeting ReadGreeting(Fields& fields) {
  VouchGreeting greeting;
  greeting.address = fields.Address();
  greeting.port = static_cast<uint16_t>(fields.Number(2));
  for (uint64_t left = fields.Number(1); left > 0; --left) {
    greeting.others.push_back(fields.Address());
  }
  return greeting;
}

VouchQuestion ReadQuestion(Fields& fields) {
  VouchQuestion question;
  question.number = fields.Number(8);
  question.address = fields.Address();
  question.port = static_cast<uint16_t>(fields.Number(2));
  return question;
}

VouchAnswer ReadAnswer(Fields& fields) {
  VouchAnswer answer;
  answer.number = fields.Number(8);
  answer.vouch = static_cast<Vouch>(fields.Number(1));
  answer.user = static_cast<uint32_t>(fields.Number(4));
  return answer;
}

// Unset if the first byte is none of ours.
std::optional<VouchMessage> Read(Fields& fields) {
  switch (static_cast<char>(fields.Number(1))) {
    case kGreeting:
      return ReadGreeting(fields);
    case kQuestion:
      return ReadQuestion(fields);
    case kAnswer:
      return ReadAnswer(fields);
    default:
      return std::nullopt;
  }
}

struct Put {
  std::string* out;

  void operator()(const VouchGreeting& greeting) const {
    const size_t others = std::min(greeting.others.size(), kMaxVouchAddresses);
    out->push_back(kGreeting);
    PutAddress(out, greeting.address);
    PutNumber(out, greeting.port, 2);
    PutNumber(out, others, 1);
    for (size_t i = 0; i < others; ++i) PutAddress(out, greeting.others[i]);
  }
  void operator()(const VouchQuestion& question) const {
    out->push_back(kQuestion);
    PutNumber(out, question.number, 8);
    PutAddress(out, question.address);
    PutNumber(out, question.port, 2);
  }
  void operator()(const VouchAnswer& answer) const {
    out->push_back(kAnswer);
    PutNumber(out, answer.number, 8);
    PutNumber(out, static_cast<uint8_t>(answer.vouch), 1);
    PutNumber(out, answer.user, 4);
  }
};

}  // namespace

void PutVouchMessage(std::string* out, const VouchMessage& message) {
  std::visit(Put{out}, message);
}

absl::StatusOr<std::vector<VouchMessage>> VouchReader::Take(absl::string_view bytes) {
  begun_.append(bytes.data(), bytes.size());
  std::vector<VouchMessage> messages;
  absl::string_view left = begun_;
  while (!left.empty()) {
    Fields fields(left);
    std::optional<VouchMessage> message = Read(fields);
    if (!message) return absl::InvalidArgumentError("it says nothing known about connections");
    if (fields.short_of()) break;
    messages.push_back(*std::move(message));
    left = fields.rest();
  }
  begun_.erase(0, begun_.size() - left.size());
  return messages;
}

}  // namespace hlaunch
