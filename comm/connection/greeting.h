// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "comm/connection/single_copy.h"
#include "proto/contract/ids.h"

// How two ranks prove to each other that they have the same secret, before either trusts a byte of
// the other. There are three messages on every new socket, which D dials and A accepts:
//
//   D -> A  Hello of D
//   A -> D  0, Hello of A, HMAC(key, "srv1", both hellos)     or a byte that says why not
//   D -> A  0, D's pull proof, HMAC(key, "cli1", both hellos, the pull proof)      or such a byte
//
// Where D has its memory is said last: only who has proved itself may know it. A says it nowhere.
//
// The hellos contain fresh random bytes, the ranks, the round and the world's size. So a greeting
// proves nothing if it was recorded, was meant for another rank, or is sent back to its sender.

namespace hlaunch {

inline constexpr size_t kSecretSize = 32;
inline constexpr size_t kMacSize = 32;
using GreetingKey = std::array<uint8_t, kMacSize>;

// Returns the bytes of a secret that is written as 64 hexadecimal digits; no bytes if `hex` is
// empty.
//
// Errors: InvalidArgument - `hex` has another form; the message does not repeat it.
absl::StatusOr<std::string> ParseSecret(absl::string_view hex);

// Derives the key for the greetings of `group` from the secret of its round.
GreetingKey DeriveGreetingKey(absl::string_view secret, absl::string_view group);

// Why a rank ends a greeting. Sent as one byte.
enum class Refusal : uint8_t {
  kNone = 0,
  kNotARank = 1,      // The bytes are not a greeting of this version.
  kOtherSecret = 2,   // The proof is wrong, or only one of the two has a secret.
  kEarlierRound = 3,  // The refused rank is of an earlier round.
  kLaterRound = 4,    // The refused rank is of a later round.
  kOtherWorld = 5,    // The refused rank has another world size.
  kOtherRank = 6,     // The refused rank looks for another rank, or its number is not in the group.
};
// Describes the refused rank, such as "it has another secret". `refusal` may come from another
// process.
std::string Describe(Refusal refusal);

// What a rank says about itself. Sent as its bytes in memory: all hosts of a job have the same
// architecture.
struct Hello {
  char magic[4] = {'h', 'l', 'c', '3'};
  Rank from = 0;
  Rank to = 0;
  int32_t world = 0;
  int64_t round = 0;       // 0: not known.
  int32_t stream = 0;      // 0 for the first stream, else the number of a further TCP stream.
  uint32_t keyed = 0;      // 1: the key is from the round's secret; 0: from a token in the store.
  uint8_t nonce[16] = {};  // Fresh random bytes.
  char host[64] = {};      // The host's name, for messages.
};
static_assert(sizeof(Hello) == 112 && std::is_trivially_copyable_v<Hello>);

// Makes the Hello of a rank, with fresh random bytes.
Hello MakeHello(Rank from, Rank to, int world, Round round, bool keyed, absl::string_view host);
std::string HostOf(const Hello& hello);

// The state of a greeting.
enum class GreetingState {
  kOpen,     // More bytes must come.
  kProven,   // The other end has proved itself.
  kRefused,  // This end or the other end has refused: see `reason`.
};

// The greeting at the end that accepted the socket. Works on bytes only. Belongs to one thread.
class AcceptingGreeting {
 public:
  static constexpr size_t kProofSize = 1 + sizeof(PullProof) + kMacSize;

  // `own` is this rank's Hello; its `to` is not used.
  AcceptingGreeting(const GreetingKey& key, const Hello& own) : key_(key), own_(own) {}

  // How many bytes the greeting still needs. The caller must not pass more.
  size_t wanted() const { return (has_hello_ ? kProofSize : sizeof(Hello)) - received_.size(); }
  // Takes bytes that have arrived. Sets `reply` to the bytes that must be sent next.
  GreetingState Receive(absl::string_view bytes, std::string* reply);

  // Whether the other end's Hello has arrived. It proves nothing yet.
  bool has_hello() const { return has_hello_; }
  const Hello& hello() const { return theirs_; }
  const PullProof& pull_proof() const { return pull_proof_; }  // With kProven.
  // With kRefused.
  Refusal reason() const { return reason_; }

 private:
  GreetingState Refuse(Refusal reason, std::string* reply);
  Refusal Judge() const;

  const GreetingKey key_;
  Hello own_;
  Hello theirs_;
  PullProof pull_proof_;
  bool has_hello_ = false;
  std::string received_;
  Refusal reason_ = Refusal::kNone;
};

// The greeting at the end that dialed. Works on bytes only. Belongs to one thread.
class DialingGreeting {
 public:
  static constexpr size_t kAnswerSize = 1 + sizeof(Hello) + kMacSize;

  DialingGreeting(const GreetingKey& key, const Hello& own) : key_(key), own_(own) {}

  // The bytes that must be sent first.
  std::string First() const;
  // As in AcceptingGreeting. After kProven, `reply` is the proof.
  size_t wanted() const { return kAnswerSize - received_.size(); }
  GreetingState Receive(absl::string_view bytes, std::string* reply);

  // With kRefused: whether this end refused the other, and the reason.
  bool refused_by_me() const { return refused_by_me_; }
  Refusal reason() const { return reason_; }

 private:
  const GreetingKey key_;
  const Hello own_;
  std::string received_;
  bool refused_by_me_ = false;
  Refusal reason_ = Refusal::kNone;
};

}  // namespace hlaunch
