// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "rendezvous/job/question.h"

namespace hlaunch {

// The open questions about one job: which nodes have been asked, what they answered, and which have
// not answered in time. An answer costs O(log n). No I/O, no lock, no clock.
//
// Belongs to one thread, or to the holder of its owner's lock.
class NodeQuestions {
 public:
  // A node that a question is about. If `word` has a problem, the node cannot be asked.
  struct Candidate {
    std::string node_id;
    NodeWord word;
  };

  // Asks those of `nodes` that can be asked, and returns the question's number.
  //
  // Errors:
  //   ResourceExhausted - kMaxQuestions are open.
  absl::StatusOr<uint64_t> Begin(const RankQuestion& question, std::vector<Candidate> nodes,
                                 Instant now);

  // Takes a node's answer. Does nothing if the node was not asked, has answered already, or answers
  // too late.
  void Answer(absl::string_view node_id, NodeAnswer answer);

  // The node is not here any more, for the reason `why`: it will not answer.
  void Gone(absl::string_view node_id, absl::string_view why);

  // Cancels the question. Returns false if it is finished, or was never asked.
  bool GiveUp(uint64_t number);

  // Ends the questions that are due. The caller calls it at NextDeadline.
  void Tick(Instant now);
  std::optional<Instant> NextDeadline() const;

  // Returns the questions that must be sent, each with its node id, since the last call.
  std::vector<std::pair<std::string, NodeQuestion>> TakeTold();

  // Returns the results of the questions that were finished since the last call, by number.
  std::vector<std::pair<uint64_t, std::vector<NodeWord>>> TakeFinished();

 private:
  struct Open {
    Instant deadline;
    Duration patience{};
    size_t max_bytes = 0;
    std::vector<NodeWord> words;
    std::map<std::string, size_t, std::less<>> awaited;  // Indexes in `words`, by node id.
  };
  using Map = std::map<uint64_t, Open>;

  Map::iterator Finish(Map::iterator question);

  Map open_;
  uint64_t last_ = 0;
  std::vector<std::pair<std::string, NodeQuestion>> told_;
  std::vector<std::pair<uint64_t, std::vector<NodeWord>>> finished_;
};

}  // namespace hlaunch
