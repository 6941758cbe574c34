// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/trust/trust.h"

// How both ends of a connection in clear show each other that they hold the same token, before
// anything else is said:
//
//   client  hello    "hlaunch" 1, server name (40), nonce (16), length of the job's id (2), the id
//   server  answer   "hlaunch" 2, nonce (16), HMAC-SHA256 (32)
//   client  proof    "hlaunch" 3, HMAC-SHA256 (32)
//
// or, in the place of an answer, a refusal: "hlaunch" 4, why (1). Numbers have their highest byte
// first. Both HMACs are over all that was said before, behind the name of who says it, so none can
// be sent back or used again. The id is empty where the client holds the whole token.
//
// It proves who has connected, and no more: who can change what passes can still do so.

namespace hlaunch {

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kMostHelloBytes = 8 + 40 + kNonceBytes + 2 + 256;
inline constexpr size_t kAnswerBytes = 8 + kNonceBytes + 32;
inline constexpr size_t kProofBytes = 8 + 32;

// What the first bytes of a connection say as a hello. A value.
struct TokenHello {
  enum class Kind {
    kNone,   // They are none, and no bytes that follow make them one.
    kMore,   // They may be; `size` bytes are to be looked at.
    kWhole,  // The first `size` bytes are one.
  };

  Kind kind = Kind::kNone;
  size_t size = 0;
  std::string server_name;
  std::string job_id;  // What the client holds the token of; empty: of all jobs.
};

// Pure.
TokenHello ReadHello(absl::string_view bytes);

// Why a rendezvous does not answer a hello. The numbers are those on the wire.
enum class GreetingRefusal : uint8_t {
  kOtherToken = 1,
  kEncrypts = 2,
  kNoToken = 3,
  kCertificates = 4,
};

std::string RefusalOfHello(GreetingRefusal why);

// 16 random bytes; empty if OpenSSL has none.
std::string NewNonce();

// The client's part in one connection. A value.
class ClientGreeting {
 public:
  // Requires: trust.in_clear(), and kNonceBytes that were never used before.
  ClientGreeting(const Trust& trust, absl::string_view nonce);

  const std::string& hello() const { return hello_; }

  // The proof, once `bytes`, which are all that has come, are an answer; empty: more is needed.
  //
  // Errors: the messages say what differs and what to do.
  //   PermissionDenied - the other end refuses, or does not hold the token.
  //   Unavailable - it does not speak this.
  absl::StatusOr<std::string> Prove(absl::string_view bytes) const;

  // What it means if the other end hangs up before it has answered; Unavailable.
  static absl::Status HungUp();

 private:
  std::string key_;
  std::string fingerprint_;
  std::string hello_;
};

// The server's part in one connection. A value.
class ServerGreeting {
 public:
  // Requires: trust.in_clear(), `hello` is whole and names its server, and kNonceBytes that were
  // never used before.
  ServerGreeting(const Trust& trust, absl::string_view hello, absl::string_view nonce);

  // What is to be sent; empty if OpenSSL refuses.
  const std::string& answer() const { return answer_; }

  // Whether `bytes`, kProofBytes, show that the client holds the token of job_id().
  bool IsProof(absl::string_view bytes) const;

  const std::string& job_id() const { return job_id_; }

 private:
  std::string key_;
  std::string hello_;
  std::string answer_;
  std::string job_id_;
};

}  // namespace hlaunch
