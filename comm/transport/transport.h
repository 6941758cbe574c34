// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "comm/call/call.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// As the peer of an Incoming of kSend, this receives from the first rank that sends. `peer` becomes
// the number of that rank.
inline constexpr Rank kAnyRank = -1;

// One message under way. Message and bytes belong to the caller, which must not touch them from
// Start until `done`, until a Wait has returned an error, or until the transport is destroyed.
struct Message {
  Rank peer = 0;        // The rank at the other end; never this rank itself. See kAnyRank.
  Call call{};          // Must be the same at both ends.
  uint64_t number = 0;  // A collective's sequence number, or the tag of kSend.
  bool done = false;    // Set by the transport.
};
struct Outgoing : Message {
  std::span<const std::byte> bytes;
};
struct Incoming : Message {
  std::span<std::byte> bytes;  // Exactly what is sent.
};

// MarkDone is for the transport. IsDone is for a thread that does not have its turn at the
// transport.
inline void MarkDone(Message* message) {
  std::atomic_ref<bool>(message->done).store(true, std::memory_order_release);
}
inline bool IsDone(const Message& message) {
  return std::atomic_ref<bool>(const_cast<bool&>(message.done)).load(std::memory_order_acquire);
}

// Why a transport has failed.
struct Failure {
  absl::Status status;
  Rank rank = -1;  // The rank that caused it, or -1.
};

// Moves bytes between the ranks of a group.
//
// Messages from one rank to another arrive whole. Messages with the same number arrive in the order
// of their Starts, where kSend is separate from all other verbs. A small message may be done before
// it is received; a large one waits for its receiver. Bytes move while a thread is in Wait, so a
// busy rank delays other ranks but loses nothing.
//
// Belongs to one thread at a time; a method may be called from any thread only where it says so.
// Implementations must pass tests/comm/transport/transport_contract_test.cc.
//
// A failure ends the group for all ranks: the first rank that notices it tells the others that
// wait, directly or in a chain. So each rank fails with the same status, and none waits for a rank
// that will not come. After that no method works any more, and the transport touches no byte of a
// caller: the program must leave the group and make another one. Failures are
//   Unavailable - a rank went away; the message names it and the call in which it was missed. A
//     rank that has gone and that nobody misses is no failure.
//   DeadlineExceeded - a rank's time was up; the message says which rank waited for which. It comes
//     a second after the deadline as a rule, because the awaited rank may itself wait for another
//     one and is asked; up to ten where a machine is overloaded. In a group of two it comes at
//     once.
//   InvalidArgument - two ranks do not make the same call; the message shows both calls.
//   Cancelled - some rank called Abort.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Begins to send or to receive a message; does not wait.
  virtual void Start(Outgoing* message) = 0;
  virtual void Start(Incoming* message) = 0;

  // Says which collective this rank is in. If another rank sends a message of another call with the
  // same number, that is a mismatch.
  virtual void Enter(const Call& call, uint64_t number) = 0;

  // Moves messages and blocks until `message` is done, `until` has come, or Poke was called; if
  // other threads wait (set_others_wait), also until any message was moved. The caller looks at
  // `done`.
  //
  // Errors: as above, but `until` is not a deadline: that it has come is no error.
  virtual absl::Status Progress(const Message& message, Instant until) = 0;

  // Ends the group for all ranks because of `why`. Returns the status with which it ended; it may
  // have ended before.
  virtual absl::Status End(Failure why) = 0;

  // Ends the group because `message` was not done in time.
  virtual absl::Status GiveUp(const Message& message) = 0;

  // Blocks until `message` is done.
  //
  // Errors: as above.
  absl::Status Wait(const Message& message, Instant deadline);

  // Makes the present or the next Progress return early. Any thread.
  virtual void Poke() = 0;

  // Says whether other threads wait for messages. If so, Progress returns when it has moved any
  // message. Any thread.
  void set_others_wait(bool wait) { others_wait_.store(wait, std::memory_order_relaxed); }

  // Why the group has failed, as far as this rank knows; null while it works.
  virtual const Failure* failure() const = 0;

  // Makes every Wait of all ranks, now or later, return Cancelled with `why`. Any thread.
  virtual void Abort(const std::string& why) = 0;

  // Sets the reason that ranks which still need this rank are told when the object is destroyed and
  // this rank leaves, such as "ValueError: bad batch".
  virtual void SayGoodbye(const std::string& why) = 0;

  // Ranks with the same text share memory. Empty: this rank shares memory with no other.
  virtual std::string host() const { return ""; }

 protected:
  bool others_wait() const { return others_wait_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> others_wait_{false};
};

// The messages that all transports use. `whom` is "rank 3" or "rank 3 on node1".
std::string Text(const Message& message);  // "all_reduce #17", "send with tag 4"
absl::Status WentAway(const std::string& whom, const Message* missed);
// `why` may be empty.
absl::Status Left(const std::string& whom, const Message& missed, const std::string& why = "");
absl::Status TimedOut(Rank self, const std::string& whom, const Message& missed);
absl::Status Mismatch(Rank self, const Message& mine, size_t my_bytes, const std::string& whom,
                      const Call& theirs, size_t their_bytes);

// Returns whether a message that arrives with `call` and `number` belongs to `message`.
inline bool SameLane(const Message& message, const Call& call, uint64_t number) {
  return message.number == number &&
         (message.call.verb == Verb::kSend) == (call.verb == Verb::kSend);
}

}  // namespace hlaunch
