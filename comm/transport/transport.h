// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "comm/call/call.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// As the peer of an Incoming of kSend: whoever is first; `peer` then becomes who it was.
inline constexpr Rank kAnyRank = -1;

// One message under way. Message and bytes belong to the caller, who leaves them alone from Start
// until `done`, until a Wait returned an error, or until the transport is gone.
struct Message {
  Rank peer = 0;        // Who it goes to or comes from; never this rank itself. See kAnyRank.
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

// For the transport; and for a thread that is not inside it.
inline void MarkDone(Message* message) {
  std::atomic_ref<bool>(message->done).store(true, std::memory_order_release);
}
inline bool IsDone(const Message& message) {
  return std::atomic_ref<bool>(const_cast<bool&>(message.done)).load(std::memory_order_acquire);
}

// Why a transport came to its end.
struct Failure {
  absl::Status status;
  Rank rank = -1;  // Who is behind it, or -1.
};

// Moves bytes between the ranks of a group.
//
// Messages from one rank to another arrive in the order of their Starts among those with the same
// number (kSend apart from the rest), and whole. A small message may be done before it is received;
// a large one waits for its receiver. Bytes move while somebody is in Wait, so a rank that is not
// there delays others and loses nothing.
//
// Belongs to one thread at a time; only what says so may be called from any. Implementations must
// pass tests/comm/transport_contract_test.cc.
//
// A failure is for all: the first rank that notices one tells the others that wait, directly or in
// a chain, so each fails with the same status, and none waits for a rank that will not come. After
// that nothing works any more, and no byte of a caller's is touched: leave the group and make
// another. Failures are
//   Unavailable - a rank went away; the message names it and the call it was missed in.
//   DeadlineExceeded - some rank's time was up; the message says who waited for whom. It comes
//     up to 200 ms after the deadline: the one that was waited for may have waited itself.
//   InvalidArgument - two ranks do not call the same thing; the message shows both calls.
//   Cancelled - some rank called Abort.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Begins to send or to receive; does not wait.
  virtual void Start(Outgoing* message) = 0;
  virtual void Start(Incoming* message) = 0;

  // Says which collective this rank is in: whoever is found to send another with the same number
  // does not call the same.
  virtual void Enter(const Call& call, uint64_t number) = 0;

  // Moves all messages on and blocks until `message` is done, `until` has come, somebody called
  // Poke, or, in company, any message was moved: look at `done`.
  //
  // Errors: as above, but for a time-out of this rank's own.
  virtual absl::Status Progress(const Message& message, Instant until) = 0;

  // Ends the transport for all. Returns why it ended, which may have been before.
  virtual absl::Status End(Failure why) = 0;

  // The same because `message` was not done in time.
  virtual absl::Status GiveUp(const Message& message) = 0;

  // Blocks until `message` is done.
  //
  // Errors: as above.
  absl::Status Wait(const Message& message, Instant deadline);

  // Makes the Progress that goes on, or the next, return early. Any thread.
  virtual void Poke() = 0;

  // Whether other threads want to hear of what Progress has done for them. Any thread.
  void set_company(bool company) { company_.store(company, std::memory_order_relaxed); }

  // What ended this transport, as far as this rank knows; null while it works.
  virtual const Failure* failure() const = 0;

  // Makes this rank's Wait, now or later, return Cancelled with `why`, and so everybody's. Any
  // thread.
  virtual void Abort(const std::string& why) = 0;

  // What tells ranks that share memory from others: the same text on the same host. May be empty
  // for one that shares it with nobody.
  virtual std::string host() const { return ""; }

 protected:
  bool company() const { return company_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> company_{false};
};

// The words every Transport uses. `whom` is "rank 3" or "rank 3 on node1".
std::string Text(const Message& message);  // "all_reduce #17", "send with tag 4"
absl::Status WentAway(const std::string& whom, const Message* missed);
absl::Status Left(const std::string& whom, const Message& missed);
absl::Status TimedOut(Rank self, const std::string& whom, const Message& missed);
absl::Status Mismatch(Rank self, const Message& mine, size_t my_bytes, const std::string& whom,
                      const Call& theirs, size_t their_bytes);

// Whether a message that arrives belongs to one that was started.
inline bool SameLane(const Message& message, const Call& call, uint64_t number) {
  return message.number == number &&
         (message.call.verb == Verb::kSend) == (call.verb == Verb::kSend);
}

}  // namespace hlaunch
