// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/token_greeting.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr size_t kHeadBytes = 8;
constexpr absl::string_view kHelloHead("hlaunch\x01", kHeadBytes);
constexpr absl::string_view kEncryptsHead("hlaunch\x05", kHeadBytes);
constexpr absl::string_view kAnswerHead("hlaunch\x02", kHeadBytes);
constexpr absl::string_view kProofHead("hlaunch\x03", kHeadBytes);
constexpr absl::string_view kRefusalHead("hlaunch\x04", kHeadBytes);
constexpr size_t kServerNameBytes = 40;
constexpr size_t kMacBytes = 32;
constexpr size_t kJobAt = kHeadBytes + kServerNameBytes + kNonceBytes;
constexpr size_t kLeastHelloBytes = kJobAt + 2;
constexpr size_t kMostJobBytes = kMostHelloBytes - kLeastHelloBytes;
// The names of the two sides in the input of the HMACs.
constexpr char kServerSays[] = "server";
constexpr char kClientSays[] = "client";

// Returns an HMAC; empty if OpenSSL refuses or there is no key.
std::string Mac(const std::string& key, absl::string_view who, absl::string_view before) {
  const std::string said = absl::StrCat(who, before);
  std::string mac(kMacBytes, '\0');
  unsigned int size = kMacBytes;
  const bool made =
      !key.empty() && ::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                             reinterpret_cast<const unsigned char*>(said.data()), said.size(),
                             reinterpret_cast<unsigned char*>(mac.data()), &size) != nullptr;
  return made ? mac : "";
}

// Compares in a time that does not depend on where the two differ.
bool IsSame(const std::string& mac, absl::string_view claimed) {
  return mac.size() == kMacBytes && claimed.size() == kMacBytes &&
         ::CRYPTO_memcmp(mac.data(), claimed.data(), kMacBytes) == 0;
}

bool MayBegin(absl::string_view bytes, absl::string_view head) {
  const size_t size = std::min(bytes.size(), head.size());
  return bytes.substr(0, size) == head.substr(0, size);
}

size_t NumberAt(absl::string_view bytes, size_t at) {
  return static_cast<size_t>(static_cast<unsigned char>(bytes[at])) << 8 |
         static_cast<unsigned char>(bytes[at + 1]);
}

}  // namespace

TokenHello ReadHello(absl::string_view bytes) {
  TokenHello hello;
  hello.encrypts = absl::StartsWith(bytes, kEncryptsHead);
  if (!hello.encrypts && !MayBegin(bytes, kHelloHead)) return hello;
  hello.size = kLeastHelloBytes;
  if (bytes.size() >= kLeastHelloBytes) {
    const size_t job_bytes = NumberAt(bytes, kJobAt);
    if (job_bytes > kMostJobBytes) return TokenHello();
    hello.size += job_bytes;
  }
  hello.kind = bytes.size() < hello.size ? TokenHello::Kind::kMore : TokenHello::Kind::kWhole;
  if (hello.kind == TokenHello::Kind::kMore) return hello;
  hello.server_name = std::string(bytes.substr(kHeadBytes, kServerNameBytes));
  hello.job_id = std::string(bytes.substr(kLeastHelloBytes, hello.size - kLeastHelloBytes));
  return hello;
}

std::string RefusalOfHello(GreetingRefusal why) {
  return absl::StrCat(kRefusalHead, std::string(1, static_cast<char>(why)));
}

std::string NewNonce() {
  std::string nonce(kNonceBytes, '\0');
  return ::RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), kNonceBytes) == 1 ? nonce
                                                                                        : "";
}

ClientGreeting::ClientGreeting(const Trust& trust, absl::string_view nonce)
    : fingerprint_(trust.fingerprint()) {
  const std::string job_id = trust.job().value_or("");
  key_ = trust.GreetingKeyFor(job_id);
  const std::string length = {static_cast<char>(job_id.size() >> 8),
                              static_cast<char>(job_id.size())};
  hello_ = absl::StrCat(trust.in_clear() ? kHelloHead : kEncryptsHead, trust.server_name(), nonce,
                        length, job_id);
}

absl::Status ClientGreeting::HungUp() {
  return absl::UnavailableError(
      "it hung up before it had shown that it holds the token; it may be too busy, or another "
      "version of hlaunch");
}

absl::StatusOr<std::string> ClientGreeting::Prove(absl::string_view bytes) const {
  const auto differs = [this](absl::string_view what, absl::string_view advice) {
    return absl::PermissionDeniedError(
        absl::StrCat(what, " (its fingerprint here: ", fingerprint_, "); ", advice));
  };
  if (MayBegin(bytes, kRefusalHead) && bytes.size() > kHeadBytes) {
    switch (static_cast<GreetingRefusal>(bytes[kHeadBytes])) {
      case GreetingRefusal::kEncrypts:
        return absl::PermissionDeniedError(
            "this node has --tls off and the rendezvous encrypts (--tls on); give all nodes the "
            "same --tls");
      case GreetingRefusal::kInClear:
        return absl::PermissionDeniedError(
            "this node encrypts (--tls on) and the rendezvous has --tls off; give all nodes the "
            "same --tls");
      case GreetingRefusal::kCertificates:
        return absl::PermissionDeniedError(
            "this node has a token and the rendezvous demands certificates (--tls-cert)");
      case GreetingRefusal::kNoToken:
        return differs("this node has a token and the rendezvous has none",
                       "give all nodes the same with HLAUNCH_TOKEN or --token-file, or "
                       "--token-file none");
      case GreetingRefusal::kOtherToken:
        return differs("this node's token is not the rendezvous' token",
                       "give all nodes the same with HLAUNCH_TOKEN or --token-file");
    }
    return absl::PermissionDeniedError(
        absl::StrCat("the rendezvous refuses this node for reason ",
                     static_cast<int>(static_cast<unsigned char>(bytes[kHeadBytes])),
                     ", which this version of hlaunch does not know; install the same version of "
                     "hlaunch on both hosts"));
  }
  const bool more = bytes.size() < kAnswerBytes &&
                    (MayBegin(bytes, kAnswerHead) || MayBegin(bytes, kRefusalHead));
  if (more) return std::string();
  if (!absl::StartsWith(bytes, kAnswerHead) || bytes.size() != kAnswerBytes) {
    return absl::UnavailableError(
        "what answers there is not a rendezvous, or another version of hlaunch");
  }
  const absl::string_view said = bytes.substr(0, kHeadBytes + kNonceBytes);
  if (!IsSame(Mac(key_, kServerSays, absl::StrCat(hello_, said)), bytes.substr(said.size()))) {
    return differs("what answers there does not hold this node's token",
                   "give all nodes the same with HLAUNCH_TOKEN or --token-file; a job's token must "
                   "be made anew where the service's has changed");
  }
  const std::string mac = Mac(key_, kClientSays, absl::StrCat(hello_, bytes));
  if (mac.empty()) return absl::UnavailableError("OpenSSL makes no HMAC with SHA-256");
  return absl::StrCat(kProofHead, mac);
}

ServerGreeting::ServerGreeting(const Trust& trust, absl::string_view hello, absl::string_view nonce)
    : hello_(hello), job_id_(ReadHello(hello).job_id) {
  key_ = trust.GreetingKeyFor(job_id_);
  const std::string said = absl::StrCat(kAnswerHead, nonce);
  const std::string mac = Mac(key_, kServerSays, absl::StrCat(hello_, said));
  if (!mac.empty() && nonce.size() == kNonceBytes) answer_ = absl::StrCat(said, mac);
}

bool ServerGreeting::IsProof(absl::string_view bytes) const {
  return absl::StartsWith(bytes, kProofHead) &&
         IsSame(Mac(key_, kClientSays, absl::StrCat(hello_, answer_)), bytes.substr(kHeadBytes));
}

}  // namespace hlaunch
