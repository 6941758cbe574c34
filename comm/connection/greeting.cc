// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/greeting.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kAcceptor = "srv1", kDialer = "cli1";

absl::string_view Bytes(const Hello& hello) {
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

GreetingKey Hmac(absl::string_view key, absl::string_view text) {
  GreetingKey mac;
  unsigned size = 0;
  HLAUNCH_CHECK(::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
                       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(),
                       &size) != nullptr &&
                size == mac.size());
  return mac;
}

absl::string_view Bytes(const PullProof& proof) {
  return {reinterpret_cast<const char*>(&proof), sizeof proof};
}

// Returns the proof of the end `role`, which covers what it says `besides` its Hello.
std::string Mac(const GreetingKey& key, absl::string_view role, const Hello& dialer,
                const Hello& acceptor, absl::string_view besides = "") {
  const absl::string_view secret(reinterpret_cast<const char*>(key.data()), key.size());
  const GreetingKey mac = Hmac(secret, absl::StrCat(role, Bytes(dialer), Bytes(acceptor), besides));
  return std::string(mac.begin(), mac.end());
}

// The time of the comparison does not tell where the two differ.
bool Equal(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Refusal ReasonOf(char byte) { return static_cast<Refusal>(static_cast<uint8_t>(byte)); }

}  // namespace

absl::StatusOr<std::string> ParseSecret(absl::string_view hex) {
  if (hex.empty()) return std::string();
  if (hex.size() != 2 * kSecretSize ||
      !std::all_of(hex.begin(), hex.end(), [](char c) { return absl::ascii_isxdigit(c); })) {
    return absl::InvalidArgumentError(absl::StrCat("the secret is not ", 2 * kSecretSize,
                                                   " hexadecimal digits: `openssl rand -hex ",
                                                   kSecretSize, "` makes one"));
  }
  return absl::HexStringToBytes(hex);
}

GreetingKey DeriveGreetingKey(absl::string_view secret, absl::string_view group) {
  return Hmac(secret, absl::StrCat("hlaunch comm greeting v1\n", group));
}

std::string Describe(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNotARank:
      return "it is not a rank of this version of hlaunch";
    case Refusal::kOtherSecret:
      return "it has another secret";
    case Refusal::kEarlierRound:
      return "it is of an earlier round";
    case Refusal::kLaterRound:
      return "it is of a later round";
    case Refusal::kOtherWorld:
      return "it counts another number of ranks";
    case Refusal::kOtherRank:
      return "there is no rank of its number, or it looks for another one";
    case Refusal::kNone:
      break;
  }
  return absl::StrCat("reason ", static_cast<int>(refusal));
}

Hello MakeHello(Rank from, Rank to, int world, Round round, bool keyed, absl::string_view host) {
  Hello hello;
  hello.from = from;
  hello.to = to;
  hello.world = world;
  hello.round = round;
  hello.keyed = keyed ? 1 : 0;
  HLAUNCH_CHECK(::getrandom(hello.nonce, sizeof hello.nonce, 0) == sizeof hello.nonce);
  host.copy(hello.host, sizeof hello.host - 1);
  return hello;
}

std::string HostOf(const Hello& hello) {
  std::string host(hello.host, ::strnlen(hello.host, sizeof hello.host));
  const auto shown = [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); };
  std::replace_if(
      host.begin(), host.end(), [&](char c) { return !shown(c); }, '?');
  return host;
}

// ---- The end that accepted.

GreetingState AcceptingGreeting::Refuse(Refusal reason, std::string* reply) {
  reason_ = reason;
  reply->assign(1, static_cast<char>(reason));
  return GreetingState::kRefused;
}

Refusal AcceptingGreeting::Judge() const {
  if (theirs_.to != own_.from || theirs_.from < 0 || theirs_.from == own_.from ||
      theirs_.stream < 0) {
    return Refusal::kOtherRank;
  }
  if (theirs_.round != own_.round) {
    return theirs_.round < own_.round ? Refusal::kEarlierRound : Refusal::kLaterRound;
  }
  if (theirs_.world != own_.world) return Refusal::kOtherWorld;
  if (theirs_.from >= own_.world) return Refusal::kOtherRank;
  return theirs_.keyed == own_.keyed ? Refusal::kNone : Refusal::kOtherSecret;
}

GreetingState AcceptingGreeting::Receive(absl::string_view bytes, std::string* reply) {
  received_.append(bytes.data(), bytes.size());
  if (!has_hello_) {
    const absl::string_view magic(own_.magic, sizeof own_.magic);
    if (!absl::StartsWith(magic, absl::string_view(received_).substr(0, magic.size()))) {
      return Refuse(Refusal::kNotARank, reply);
    }
    if (received_.size() < sizeof theirs_) return GreetingState::kOpen;
    std::memcpy(&theirs_, received_.data(), sizeof theirs_);
    received_.clear();
    has_hello_ = true;
    if (const Refusal reason = Judge(); reason != Refusal::kNone) return Refuse(reason, reply);
    own_.to = theirs_.from;
    *reply =
        absl::StrCat(absl::string_view("\0", 1), Bytes(own_), Mac(key_, kAcceptor, theirs_, own_));
    return GreetingState::kOpen;
  }
  if (!received_.empty() && received_[0] != 0) {
    reason_ = ReasonOf(received_[0]);
    return GreetingState::kRefused;
  }
  if (received_.size() < kProofSize) return GreetingState::kOpen;
  const absl::string_view said = absl::string_view(received_).substr(1, sizeof pull_proof_);
  if (!Equal(absl::string_view(received_).substr(1 + said.size()),
             Mac(key_, kDialer, theirs_, own_, said))) {
    return Refuse(Refusal::kOtherSecret, reply);
  }
  std::memcpy(&pull_proof_, said.data(), sizeof pull_proof_);
  return GreetingState::kProven;
}

// ---- The end that dialed.

std::string DialingGreeting::First() const { return std::string(Bytes(own_)); }

GreetingState DialingGreeting::Receive(absl::string_view bytes, std::string* reply) {
  received_.append(bytes.data(), bytes.size());
  if (!received_.empty() && received_[0] != 0) {
    reason_ = ReasonOf(received_[0]);
    return GreetingState::kRefused;
  }
  if (received_.size() < kAnswerSize) return GreetingState::kOpen;
  Hello theirs;
  std::memcpy(&theirs, received_.data() + 1, sizeof theirs);
  const std::string proof = received_.substr(1 + sizeof theirs);
  const bool expected = theirs.from == own_.to && theirs.to == own_.from &&
                        theirs.world == own_.world && theirs.round == own_.round;
  if (!Equal(proof, Mac(key_, kAcceptor, own_, theirs))) {
    reason_ = Refusal::kOtherSecret;
  } else if (!expected) {
    reason_ = Refusal::kOtherRank;
  }
  refused_by_me_ = reason_ != Refusal::kNone;
  *reply = std::string(1, static_cast<char>(reason_));
  if (refused_by_me_) return GreetingState::kRefused;
  const PullProof pull_proof = OwnPullProof();
  absl::StrAppend(reply, Bytes(pull_proof), Mac(key_, kDialer, own_, theirs, Bytes(pull_proof)));
  return GreetingState::kProven;
}

}  // namespace hlaunch
