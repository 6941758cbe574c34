// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "hlaunch/v1/rendezvous.pb.h"
#include "proto/base/clock.h"
#include "rendezvous/job/question.h"
#include "rendezvous/job/round_word.h"
#include "rendezvous/round/values/round.h"
#include "rendezvous/voter/group.h"

namespace hlaunch {

// What a stream has to say to its node, and what the node has shown to have read. Of directives,
// and of words of each node, only the latest counts.
//
// A value. Its owner guards it.
class PendingResponse {
 public:
  void Put(const Directive& directive) { directive_ = directive; }
  // Of too many questions the oldest are dropped.
  void Put(const NodeQuestion& question);
  void Put(const RoundWord& word) { words_[word.node_rank] = word; }
  void Probe() { probe_ = true; }
  // All messages of the node, `read` by now, are answered.
  void Answer(uint64_t read);
  // The node is told who the voters are, and not what holds for the job.
  void Redirect(bool redirects) { redirects_ = redirects; }

  // Whether there is nothing to say.
  bool empty() const;

  // Writes all of it into `response`, which is empty, unless that would get too long: then the rest
  // of the words stays. `policy`: what holds for the job, for the first response; null if the node
  // is redirected. `voters`: those of now.
  void Pack(const JobPolicy* policy, const VoterMembers& voters, Instant now,
            v1::AttachResponse* response);

  // Returns the age at most of a message of the node that shows that it had read its response
  // `seen` by then: it was made after that response.
  Duration AgeOfMessage(uint64_t seen, Instant now);

 private:
  bool policy_sent_ = false;
  bool probe_ = false;
  bool answer_ = false;
  bool redirects_ = false;
  VoterMembers told_;     // The voters that the node knows of.
  uint64_t heard_ = 0;    // Messages that are answered.
  uint64_t written_ = 0;  // Responses.
  // The numbers of the responses that the node has not shown to have read, and when each was made;
  // and when the last one was made that it has read.
  std::deque<std::pair<uint64_t, Instant>> responses_;
  Instant seen_at_ = MonotonicClock().Now();
  std::optional<Directive> directive_;  // The latest one, if not sent yet.
  std::deque<NodeQuestion> questions_;  // Questions that were not sent yet.
  std::map<int, RoundWord> words_;      // As JobRendezvous has them.
};

}  // namespace hlaunch
