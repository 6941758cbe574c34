// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/joint/pair_plan.h"
#include "agent/health/local/check_result.h"
#include "rendezvous/round/figures.h"
#include "rendezvous/round/round.h"

// What the nodes of a round found when they checked themselves together. Pure.

namespace hlaunch {

// What every node knows after a joint check, the same on all. Nodes are node ranks.
struct JointFacts {
  int size = 0;                        // Nodes that should have come.
  std::map<int, std::string> hosts;    // Of those that came; empty: not asked.
  std::map<int, std::string> figures;  // What each says of itself: numbers by Figure.
  std::map<int, std::string> sums;     // What each says of the sum of all, if there was one.
  std::vector<PairResult> pairs = {};  // What was measured,
  PairVerdict verdict = {};            // and what it proves.
  int rounds = 0;
};

// What a node says of the sum; all else is why there was none.
inline constexpr char kSumExact[] = "exact";
inline constexpr char kSumWrong[] = "wrong";

// A value.
struct JointReport {
  bool joined = false;             // This node took part;
  std::string why;                 // if not, why.
  int node_rank = 0;               // Of this node.
  std::vector<PeerFinding> peers;  // At most kMaxFindings of each.
  std::vector<LinkFinding> links;
  std::string note;                // What is wrong without a name, in one line.
  std::vector<std::string> hosts;  // By node rank; empty: it did not come.
  std::vector<PairResult> pairs;
  std::vector<NodeFigures> figures;  // By node rank; empty unless it was asked for.
  int rounds = 0;
};

JointReport JudgeTogether(const JointFacts& facts);

// The best that `node` reached with any other; nothing if it was in no pair that ended well.
std::optional<double> BestLatency(const std::vector<PairResult>& pairs, int node);
std::optional<double> BestSpeed(const std::vector<PairResult>& pairs, int node);

// The name of a node, or its rank.
std::string HostOf(const JointReport& report, int node);

// One figure of all nodes; scale kOffset: a time of day, whose mean says nothing.
struct FigureSpread {
  const FigureRule& rule;
  Spread spread;
};
std::vector<FigureSpread> SpreadsOf(const JointReport& report);

// "processor 3 ms (node0) to 9 ms (node2), 4.5 ms on average": one line for each figure of several
// nodes that more than one of them knows.
std::vector<std::string> DescribeFigures(const JointReport& report);

// The report as a check's result: it is all in the detail.
inline constexpr char kJointCheck[] = "joint check";
CheckResult ToResult(const JointReport& report);
// Nothing if `result` is none of these.
std::optional<JointReport> JointReportOf(const CheckResult& result);

}  // namespace hlaunch
