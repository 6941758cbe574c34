// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/store/keys/key_space.h"

namespace hlaunch {

// PyTorch's TCPStore wire. A request is a code byte and the fields that go with it: no frame, no
// version, integers little-endian, texts as a u64 length and the bytes. The codes have been
// renumbered twice, and a client does not say which numbering it speaks.
enum class C10dDialect {
  kUnknown,  // Nothing has arrived.
  kLegacy,   // kTorch1 or kTorch21: what came so far means the same in both.
  kTorch1,   // 1.9 to 2.0; no CANCEL_WAIT, and a second, silent connection for callbacks.
  kTorch21,  // 2.1.
  kTorch22,  // 2.2 and later: begins with VALIDATE.
};

// Parses the user's name of a dialect: auto (kUnknown), torch1.13, torch2.1, torch2.2+.
//
// Errors:
//   InvalidArgument - the name is none of these.
absl::StatusOr<C10dDialect> ParseC10dDialect(absl::string_view name);

enum class C10dOp : uint8_t {  // In the order of kTorch22's codes, which begin with VALIDATE at 0.
  kSet = 1,
  kCompareSet,
  kGet,
  kAdd,
  kCheck,
  kWait,
  kNumKeys,
  kDeleteKey,
  kAppend,
  kMultiGet,
  kMultiSet,
  kCancelWait,
  kPing,
  kQueuePush,
  kQueuePop,
  kQueueLen,
  kListKeys,
  kBarrier,
  kWatchKey,  // kTorch1 only.
};

struct C10dRequest {
  C10dOp op = C10dOp::kSet;
  std::vector<std::string> keys;    // One key, or the list, as sent: torch puts "/" before each.
  std::vector<std::string> values;  // One per key; kCompareSet: expected, desired.
  int64_t number = 0;               // kAdd: what to add; kPing: nonce; kBarrier: world size.
};

inline constexpr uint32_t kC10dMagic = 0x3C85F7CE;  // What VALIDATE carries.

// Returns the limit for all texts of one request or one reply together: 64 MiB, or a compare_set of
// the largest values if that is more. PyTorch has no such limit; without it a list could ask for
// 131,072 values of 8 MiB.
size_t MaxC10dMessageBytes(const StoreLimits& limits);

// Turns the bytes of one connection into requests, in time linear in the bytes however they are
// split. Belongs to one thread; does no I/O.
class C10dParser {
 public:
  // `older` is the dialect of a client that does not begin with VALIDATE: kTorch1 or kTorch21.
  // kTorch22 refuses such a client; kUnknown finds the dialect out from what the client sends.
  explicit C10dParser(C10dDialect older = C10dDialect::kUnknown, const StoreLimits& limits = {})
      : older_(older), limits_(limits) {}

  // Takes bytes off the front of `bytes` up to the end of one request and returns that request.
  // Returns nothing if all bytes were taken and more are needed.
  //
  // After an error the stream is lost: call nothing more.
  //
  // Errors:
  //   InvalidArgument - the code is unknown, or an older client must be refused.
  //   ResourceExhausted - the request is over one of the limits or MaxC10dMessageBytes.
  absl::StatusOr<std::optional<C10dRequest>> Next(absl::string_view* bytes);

  // True if what has arrived is either a whole DELETE_KEY of kTorch1 or the beginning of an APPEND
  // of kTorch21. The sender of a DELETE_KEY waits for its reply, the sender of an APPEND goes on
  // sending: the caller must tell them apart by time.
  bool awaits_silence() const { return step_ == Step::kSilence; }

  // Returns the DELETE_KEY, after the peer stayed silent. Requires: awaits_silence().
  C10dRequest Silence();

  // The bytes that are held of a request which is still arriving.
  size_t arriving_bytes() const { return arriving_bytes_; }

  C10dDialect dialect() const { return dialect_; }

 private:
  enum class Step { kCode, kMagic, kNumber, kCount, kLength, kText, kSilence };

  absl::Status Begin(uint8_t code);
  absl::Status BeginOlder();
  absl::StatusOr<C10dOp> LegacyOp(uint8_t code);
  void StartRequest(C10dOp op);
  void StartField();
  void FieldDone();
  C10dRequest Finish();
  bool TakeScalar(absl::string_view* bytes, size_t width, uint64_t* value);
  absl::Status TakeMagic(absl::string_view* bytes);
  absl::Status TakeCount(uint64_t count);
  absl::Status TakeLength(uint64_t length);
  void TakeText(absl::string_view* bytes);

  C10dDialect older_;
  StoreLimits limits_;
  C10dDialect dialect_ = C10dDialect::kUnknown;
  bool any_request_ = false;
  Step step_ = Step::kCode;
  bool done_ = false;  // A whole request is in request_.
  C10dRequest request_;
  absl::string_view fields_;  // Fields still to come of this request, or of this list item.
  absl::string_view item_;    // The fields of each further item.
  uint64_t items_left_ = 0;
  std::array<char, 8> scalar_{};
  size_t scalar_size_ = 0;
  size_t text_left_ = 0;
  size_t message_bytes_ = 0;
  size_t arriving_bytes_ = 0;
};

// Returns `request` as kTorch22 sends it.
std::string SerializeC10dRequest(const C10dRequest& request);

// These write and read the pieces of replies and requests.
void PutByte(std::string* out, uint8_t value);
void PutUint32(std::string* out, uint32_t value);
void PutInt64(std::string* out, int64_t value);
void PutText(std::string* out, absl::string_view text);
int64_t ReadInt64(absl::string_view eight_bytes);

// One-byte replies.
inline constexpr uint8_t kC10dReady = 0;
inline constexpr uint8_t kC10dNotReady = 1;
inline constexpr uint8_t kC10dStopWaiting = 0;
inline constexpr uint8_t kC10dWaitCanceled = 1;
inline constexpr uint8_t kC10dCallbackRegistered = 3;

// Sent unasked to a kTorch1 client that watches a key, each with the key, its old and new value.
inline constexpr uint8_t kC10dKeyUpdated = 0;
inline constexpr uint8_t kC10dKeyCreated = 1;
inline constexpr uint8_t kC10dKeyDeleted = 2;

}  // namespace hlaunch
