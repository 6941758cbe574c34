// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"

// The questions of people about the ranks of a running job, and the answers. All are plain values.

namespace hlaunch {

// Open questions about one job; a further one is refused.
inline constexpr size_t kMaxQuestions = 8;
// The size of a node's answer, and of all answers to a question, which come in one message.
inline constexpr size_t kMaxAnswerBytes = 32 << 10;
inline constexpr size_t kMaxAnswersBytes = 12 << 20;
inline constexpr Duration kMaxPatience = std::chrono::seconds(60);

struct RankQuestion {
  enum class Kind {
    kWhy,     // Where each rank is and what it does; answered with SnapshotText.
    kStacks,  // The stack of each rank's main thread; answered with StacksText.
  };
  Kind kind = Kind::kWhy;
  std::vector<Rank> ranks;                       // In ascending order; empty means all.
  bool native = false;                           // kStacks: with the frames of C.
  Duration patience = std::chrono::seconds(10);  // The time for all nodes to answer.
};

// The question to one node.
struct NodeQuestion {
  uint64_t number = 0;
  RankQuestion question;
  size_t max_bytes = kMaxAnswerBytes;  // Limit of the answer's text.
};

struct NodeAnswer {
  uint64_t number = 0;
  std::string text;     // What the node has found.
  std::string problem;  // Why there is no text, in one line; empty if there is.
};

// The result from one node.
struct NodeWord {
  std::string host;
  int node_rank = 0;
  Rank first_rank = 0;
  int nproc = 1;
  std::string text;     // As in its answer.
  std::string problem;  // As in its answer, or why it has not answered.
};

struct JobAnswer {
  Round round = 0;              // The latest, 0 if there was none.
  int world_size = 0;           // Workers in it.
  std::string explanation;      // Why the job is in its state, in one line.
  std::vector<NodeWord> nodes;  // If workers run: the nodes of the ranks in question, by rank.
};

}  // namespace hlaunch
