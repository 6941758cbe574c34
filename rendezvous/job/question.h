// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"

// What a person asks of the ranks of a running job, and what comes of it. All are plain values.

namespace hlaunch {

// Of one job at a time. Who comes then is refused.
inline constexpr size_t kMaxQuestions = 8;
// Of a node's answer, and of all answers to a question: these come in one message.
inline constexpr size_t kMaxAnswerBytes = 32 << 10;
inline constexpr size_t kMaxAnswersBytes = 12 << 20;
inline constexpr Duration kMaxPatience = std::chrono::seconds(60);

struct RankQuestion {
  enum class Kind {
    kWhy,     // Where each is and what it does; answered with PictureText.
    kStacks,  // The stack of each one's main thread; answered with StacksText.
  };
  Kind kind = Kind::kWhy;
  std::vector<Rank> ranks;                       // In their order; empty: all.
  bool native = false;                           // kStacks: with the frames of C.
  Duration patience = std::chrono::seconds(10);  // For all nodes to answer.
};

// The same for one node.
struct NodeQuestion {
  uint64_t number = 0;
  RankQuestion question;
  size_t max_bytes = kMaxAnswerBytes;  // Of the answer's text.
};

struct NodeAnswer {
  uint64_t number = 0;
  std::string text;     // What it has found.
  std::string problem;  // Why there is none, in one line; empty: there is.
};

// What came of one node.
struct NodeWord {
  std::string host;
  int node_rank = 0;
  Rank first_rank = 0;
  int nproc = 1;
  std::string text;     // As in its answer.
  std::string problem;  // The same, or why it has not answered.
};

struct JobAnswer {
  Round round = 0;              // The latest, 0 if there was none.
  int world_size = 0;           // Workers in it.
  std::string explanation;      // Why the job stands where it stands, in one line.
  std::vector<NodeWord> nodes;  // Where workers run: those that were asked, by their ranks.
};

}  // namespace hlaunch
