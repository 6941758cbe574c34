// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/net/trust/trust.h"

// By this greeting both ends of a connection show each other that they hold the same token, before
// they send anything else. With encryption, TLS begins after it:
//
//   client  hello    "hlaunch" 1 (in clear) or 5 (TLS follows), server name (40), nonce (16),
//                    length of the job's id (2), the id
//   server  answer   "hlaunch" 2, nonce (16), HMAC-SHA256 (32)
//   client  proof    "hlaunch" 3, HMAC-SHA256 (32)
//
// The server may send a refusal in place of the answer: "hlaunch" 4, why (1). Numbers have their
// highest byte first. Each HMAC is over its sender's name and all that was sent before, so it
// cannot be sent back or used again. The id is empty if the client holds the whole token.
//
// The greeting proves only who has connected: in clear, an attacker who can change the traffic can
// still do so. It costs a server some microseconds, a TLS handshake milliseconds and 75 KB.

namespace hlaunch {

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kMostHelloBytes = 8 + 40 + kNonceBytes + 2 + 256;
inline constexpr size_t kAnswerBytes = 8 + kNonceBytes + 32;
inline constexpr size_t kProofBytes = 8 + 32;

// The first bytes of a connection, read as a hello. A value.
struct TokenHello {
  enum class Kind {
    kNone,   // They are not a hello, whatever bytes follow.
    kMore,   // They may be a hello; at least `size` bytes are needed.
    kWhole,  // The first `size` bytes are a hello.
  };

  Kind kind = Kind::kNone;
  size_t size = 0;
  bool encrypts = false;  // TLS follows.
  std::string server_name;
  std::string job_id;  // The job whose token the client holds; empty: the token of all jobs.
};

// Pure.
TokenHello ReadHello(absl::string_view bytes);

// Why a rendezvous refuses a hello. The numbers are those on the wire.
enum class GreetingRefusal : uint8_t {
  kOtherToken = 1,
  kEncrypts = 2,
  kNoToken = 3,
  kCertificates = 4,
  kInClear = 5,
};

std::string RefusalOfHello(GreetingRefusal why);

// Returns 16 random bytes; empty if OpenSSL has none.
std::string NewNonce();

// The client's part in one connection. A value.
class ClientGreeting {
 public:
  // Requires: trust.greets(), and a `nonce` of kNonceBytes that was never used before.
  ClientGreeting(const Trust& trust, absl::string_view nonce);

  const std::string& hello() const { return hello_; }

  // Returns the proof if `bytes`, which are all that has come, are an answer; empty if more are
  // needed.
  //
  // Errors: the messages say what differs and what to do.
  //   PermissionDenied - the other end refuses, or does not hold the token.
  //   Unavailable - the other end does not speak this protocol.
  absl::StatusOr<std::string> Prove(absl::string_view bytes) const;

  // Returns what it means if the other end hangs up before it has answered: Unavailable.
  static absl::Status HungUp();

 private:
  std::string key_;
  std::string fingerprint_;
  std::string hello_;
};

// The server's part in one connection. A value.
class ServerGreeting {
 public:
  // Requires: trust.greets(), a `hello` that is whole and names this server, and a `nonce` of
  // kNonceBytes that was never used before.
  ServerGreeting(const Trust& trust, absl::string_view hello, absl::string_view nonce);

  // The bytes to send; empty if OpenSSL refuses.
  const std::string& answer() const { return answer_; }

  // Returns whether `bytes`, kProofBytes long, show that the client holds the token of job_id().
  bool IsProof(absl::string_view bytes) const;

  const std::string& job_id() const { return job_id_; }

 private:
  std::string key_;
  std::string hello_;
  std::string answer_;
  std::string job_id_;
};

}  // namespace hlaunch
