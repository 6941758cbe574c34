// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "rendezvous/job/answer_pace.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// What a node has to send to the rendezvous. Of its updates and of its words to other nodes only
// the latest counts; its answers are sent in order, and the oldest are dropped if they are many.
//
// Thread-safe.
class Outbox {
 public:
  // The latest update, with a number that grows with each one, and at most one further message.
  struct Message {
    NodeUpdate update;
    uint64_t version = 0;
    std::optional<NodeAnswer> answer;
    std::optional<RoundWord> word;
    bool closing = false;  // Close was called.
  };

  struct State {
    uint64_t version = 0;                // Of the latest update.
    bool last_update = false;            // It is kLeft or kFinished: nothing follows it.
    std::optional<Instant> close_until;  // The argument of Close.
  };

  explicit Outbox(const NodeUpdate& update) : latest_(update) {}

  void Put(const NodeUpdate& update);
  void Put(NodeAnswer answer);
  void Put(RoundWord word);

  // Nothing more will be put in. What is there may be sent until then.
  void Close(Instant until);

  State state() const;

  // Returns when the next answer or word may be sent, at `now` at the earliest; Instant::max() if
  // there is none.
  Instant NextAt(Instant now) const;

  // Returns the update, and takes out the answer or word that may be sent `now`. Takes none if the
  // update is newer than `sent`, since that goes first, or unless `joined`.
  Message Take(uint64_t sent, bool joined, Instant now);

 private:
  Instant NextAtLocked(Instant now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;
  NodeUpdate latest_ ABSL_GUARDED_BY(mu_);
  uint64_t version_ ABSL_GUARDED_BY(mu_) = 1;
  std::deque<NodeAnswer> answers_ ABSL_GUARDED_BY(mu_);
  std::optional<RoundWord> word_ ABSL_GUARDED_BY(mu_);
  AnswerPace pace_ ABSL_GUARDED_BY(mu_);  // Of both.
  std::optional<Instant> close_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
