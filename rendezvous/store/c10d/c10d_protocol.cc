// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_protocol.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is the host's memory");

constexpr size_t kTrustedBytes = 128 << 10;
constexpr size_t kMaxMessageBytes = 64 << 20;

// k key, v value, i 64-bit number, n 32-bit number, K list of keys, P list of keys and values.
absl::string_view FieldsOf(C10dOp op) {
  switch (op) {
    case C10dOp::kSet:
    case C10dOp::kAppend:
    case C10dOp::kQueuePush:
      return "kv";
    case C10dOp::kCompareSet:
      return "kvv";
    case C10dOp::kGet:
    case C10dOp::kDeleteKey:
    case C10dOp::kQueuePop:
    case C10dOp::kQueueLen:
    case C10dOp::kWatchKey:
      return "k";
    case C10dOp::kAdd:
    case C10dOp::kBarrier:
      return "ki";
    case C10dOp::kCheck:
    case C10dOp::kWait:
    case C10dOp::kMultiGet:
      return "K";
    case C10dOp::kMultiSet:
      return "P";
    case C10dOp::kPing:
      return "n";
    case C10dOp::kNumKeys:
    case C10dOp::kCancelWait:
    case C10dOp::kListKeys:
      return "";
  }
  return "";
}

absl::Status UnknownCode(uint8_t code) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a request of a c10d store client: unknown code ", code));
}

}  // namespace

absl::StatusOr<C10dDialect> ParseC10dDialect(absl::string_view name) {
  if (name == "auto") return C10dDialect::kUnknown;
  if (name == "torch1.13") return C10dDialect::kTorch1;
  if (name == "torch2.1") return C10dDialect::kTorch21;
  if (name == "torch2.2+") return C10dDialect::kTorch22;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is no dialect of the store: give auto, torch1.13, torch2.1 or torch2.2+"));
}

size_t MaxC10dMessageBytes(const StoreLimits& limits) {
  return std::max(kMaxMessageBytes, limits.key_bytes + 2 * limits.value_bytes);
}

absl::StatusOr<std::optional<C10dRequest>> C10dParser::Next(absl::string_view* bytes) {
  uint64_t value = 0;
  while (!done_) {
    if (bytes->empty()) return std::optional<C10dRequest>();
    switch (step_) {
      case Step::kCode: {
        const auto code = static_cast<uint8_t>(bytes->front());
        bytes->remove_prefix(1);
        HLAUNCH_RETURN_IF_ERROR(Begin(code));
        break;
      }
      case Step::kMagic:
        HLAUNCH_RETURN_IF_ERROR(TakeMagic(bytes));
        break;
      case Step::kNumber: {
        const size_t width = fields_.front() == 'n' ? sizeof(uint32_t) : sizeof(uint64_t);
        if (!TakeScalar(bytes, width, &value)) break;
        request_.number = static_cast<int64_t>(value);
        FieldDone();
        break;
      }
      case Step::kCount:
        if (TakeScalar(bytes, sizeof(uint64_t), &value)) HLAUNCH_RETURN_IF_ERROR(TakeCount(value));
        break;
      case Step::kLength:
        if (TakeScalar(bytes, sizeof(uint64_t), &value)) HLAUNCH_RETURN_IF_ERROR(TakeLength(value));
        break;
      case Step::kText:
        TakeText(bytes);
        break;
      case Step::kSilence:  // The client goes on sending, so it is APPEND.
        dialect_ = C10dDialect::kTorch21;
        StartField();
        break;
    }
  }
  return std::optional<C10dRequest>(Finish());
}

C10dRequest C10dParser::Silence() {
  HLAUNCH_CHECK(awaits_silence());
  dialect_ = C10dDialect::kTorch1;
  request_.op = C10dOp::kDeleteKey;
  return Finish();
}

C10dRequest C10dParser::Finish() {
  done_ = false;
  any_request_ = true;
  step_ = Step::kCode;
  message_bytes_ = 0;
  arriving_bytes_ = 0;
  return std::exchange(request_, {});
}

absl::Status C10dParser::Begin(uint8_t code) {
  if (dialect_ == C10dDialect::kUnknown && code == 0) {
    // VALIDATE of kTorch22, or SET of an older one: the next four bytes tell.
    step_ = Step::kMagic;
    return absl::OkStatus();
  }
  if (dialect_ == C10dDialect::kTorch22) {
    if (code == 0 || code > static_cast<uint8_t>(C10dOp::kBarrier)) return UnknownCode(code);
    StartRequest(static_cast<C10dOp>(code));
    return absl::OkStatus();
  }
  if (dialect_ == C10dDialect::kUnknown) HLAUNCH_RETURN_IF_ERROR(BeginOlder());
  HLAUNCH_ASSIGN_OR_RETURN(const C10dOp op, LegacyOp(code));
  StartRequest(op);
  return absl::OkStatus();
}

absl::Status C10dParser::BeginOlder() {
  if (older_ == C10dDialect::kTorch22) {
    return absl::InvalidArgumentError(
        "not a client of PyTorch 2.2 or later, and the store is told to serve no other "
        "(--store-dialect)");
  }
  dialect_ = older_ == C10dDialect::kUnknown ? C10dDialect::kLegacy : older_;
  return absl::OkStatus();
}

// Codes 0 to 6 are the same in kTorch1 and kTorch21; the others may tell which it is.
absl::StatusOr<C10dOp> C10dParser::LegacyOp(uint8_t code) {
  if (code <= 6) return static_cast<C10dOp>(code + 1);
  const bool torch1 = dialect_ == C10dDialect::kTorch1;
  const bool torch21 = dialect_ == C10dDialect::kTorch21;
  switch (code) {
    case 7:
      // A kTorch1 client watches keys on a separate connection, where this request comes first.
      if (torch1 || (!torch21 && !any_request_)) {
        dialect_ = C10dDialect::kTorch1;
        return C10dOp::kWatchKey;
      }
      dialect_ = C10dDialect::kTorch21;
      return C10dOp::kDeleteKey;
    case 8:
      return torch1 ? C10dOp::kDeleteKey : C10dOp::kAppend;  // An APPEND, unless silence follows.
    case 9:
    case 10:
    case 11:
      if (torch1) return UnknownCode(code);
      dialect_ = C10dDialect::kTorch21;
      return static_cast<C10dOp>(code - 9 + static_cast<int>(C10dOp::kMultiGet));
    default:
      return UnknownCode(code);
  }
}

void C10dParser::StartRequest(C10dOp op) {
  request_.op = op;
  fields_ = FieldsOf(op);
  item_ = "";
  items_left_ = 0;
  StartField();
}

void C10dParser::StartField() {
  if (fields_.empty() && items_left_ > 0) {
    --items_left_;
    fields_ = item_;
  }
  if (fields_.empty()) {
    done_ = true;
    return;
  }
  switch (fields_.front()) {
    case 'i':
    case 'n':
      step_ = Step::kNumber;
      break;
    case 'K':
    case 'P':
      step_ = Step::kCount;
      break;
    default:
      step_ = Step::kLength;
      break;
  }
}

void C10dParser::FieldDone() {
  fields_.remove_prefix(1);
  if (request_.op == C10dOp::kAppend && dialect_ == C10dDialect::kLegacy && fields_ == "v") {
    step_ = Step::kSilence;
    return;
  }
  StartField();
}

bool C10dParser::TakeScalar(absl::string_view* bytes, size_t width, uint64_t* value) {
  const size_t taken = std::min(width - scalar_size_, bytes->size());
  std::memcpy(scalar_.data() + scalar_size_, bytes->data(), taken);
  bytes->remove_prefix(taken);
  scalar_size_ += taken;
  if (scalar_size_ < width) return false;
  *value = 0;
  std::memcpy(value, scalar_.data(), width);
  scalar_size_ = 0;
  return true;
}

absl::Status C10dParser::TakeMagic(absl::string_view* bytes) {
  uint64_t magic = 0;
  if (!TakeScalar(bytes, sizeof(uint32_t), &magic)) return absl::OkStatus();
  if (magic == kC10dMagic) {
    dialect_ = C10dDialect::kTorch22;
    step_ = Step::kCode;
    return absl::OkStatus();
  }
  // It is a SET, and these bytes were the low half of its key's length. As a length the magic would
  // be a gigabyte, so the two cannot be mixed up.
  HLAUNCH_RETURN_IF_ERROR(BeginOlder());
  StartRequest(C10dOp::kSet);
  scalar_size_ = sizeof(uint32_t);
  return absl::OkStatus();
}

absl::Status C10dParser::TakeCount(uint64_t count) {
  HLAUNCH_RETURN_IF_ERROR(limits_.CheckList(count));
  items_left_ = count;
  item_ = fields_.front() == 'P' ? "kv" : "k";
  FieldDone();
  return absl::OkStatus();
}

absl::Status C10dParser::TakeLength(uint64_t length) {
  const bool key = fields_.front() == 'k';
  HLAUNCH_RETURN_IF_ERROR(key ? limits_.CheckKey(length) : limits_.CheckValue(length));
  message_bytes_ += length;
  if (const size_t most = MaxC10dMessageBytes(limits_); message_bytes_ > most) {
    return absl::ResourceExhaustedError(absl::StrCat("a request of more than ", most, " bytes"));
  }
  (key ? request_.keys : request_.values).emplace_back();
  arriving_bytes_ += sizeof(std::string);
  text_left_ = length;
  step_ = Step::kText;
  if (length == 0) FieldDone();
  return absl::OkStatus();
}

void C10dParser::TakeText(absl::string_view* bytes) {
  std::string& text = fields_.front() == 'k' ? request_.keys.back() : request_.values.back();
  const size_t taken = std::min(text_left_, bytes->size());
  // Reserves room for the whole text once a good part has come. Before that a stranger could claim
  // any length at no cost.
  if (text.size() >= kTrustedBytes) text.reserve(text.size() + text_left_);
  text.append(bytes->data(), taken);
  arriving_bytes_ += taken;
  bytes->remove_prefix(taken);
  text_left_ -= taken;
  if (text_left_ == 0) FieldDone();
}

std::string SerializeC10dRequest(const C10dRequest& request) {
  std::string out;
  size_t key = 0;
  size_t value = 0;
  PutByte(&out, static_cast<uint8_t>(request.op));
  for (const char field : FieldsOf(request.op)) {
    switch (field) {
      case 'k':
        PutText(&out, request.keys[key++]);
        break;
      case 'v':
        PutText(&out, request.values[value++]);
        break;
      case 'i':
        PutInt64(&out, request.number);
        break;
      case 'n':
        PutUint32(&out, static_cast<uint32_t>(request.number));
        break;
      default:
        PutInt64(&out, static_cast<int64_t>(request.keys.size()));
        for (; key < request.keys.size(); ++key) {
          PutText(&out, request.keys[key]);
          if (field == 'P') PutText(&out, request.values[key]);
        }
    }
  }
  return out;
}

void PutByte(std::string* out, uint8_t value) { out->push_back(static_cast<char>(value)); }

void PutUint32(std::string* out, uint32_t value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutInt64(std::string* out, int64_t value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutText(std::string* out, absl::string_view text) {
  PutInt64(out, static_cast<int64_t>(text.size()));
  out->append(text.data(), text.size());
}

int64_t ReadInt64(absl::string_view eight_bytes) {
  int64_t value = 0;
  HLAUNCH_CHECK(eight_bytes.size() == sizeof(value));
  std::memcpy(&value, eight_bytes.data(), sizeof(value));
  return value;
}

}  // namespace hlaunch
