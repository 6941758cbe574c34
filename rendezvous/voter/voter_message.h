// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>

#include "proto/contract/ids.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// A message between voters. It may be lost, doubled, late and out of order. A value.
struct VoterMessage {
  enum class Kind {
    kAppend,          // A leader's sign of life, with its entry if the receiver lacks it.
    kAppended,        // The answer to it.
    kRequestPreVote,  // Asks whether a vote would be granted. Not binding.
    kPreVote,         // The answer to it.
    kRequestVote,
    kVote,     // The answer to it.
    kRemoved,  // The answer to either request: a newer group is without the requester.
  };
  Kind kind = Kind::kAppend;
  Incarnation from = 0;
  Incarnation to = 0;
  Term term = 0;           // The sender's. kAppended: also that of the append, if it was accepted.
  Ballot ballot;           // Of the entry that the sender holds.
  SharedEntry entry;       // kAppend: that entry; null if the receiver should hold it.
  uint64_t beat = 0;       // kAppend: counts up in a term. kAppended: the one that it answers.
  uint64_t confirmed = 0;  // kAppend: the highest beat that the receiver has answered.
  // kAppend: the highest beat whose answer the job's rendezvous took as a sign of life of the
  // receiver's node; 0: none. A voter itself ignores it.
  uint64_t taken = 0;
  Term asked = 0;        // Requests and their answers: the term to be voted in.
  bool granted = false;  // kPreVote, kVote.
};

}  // namespace hlaunch
