// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/joint/pair_plan.h"
#include "agent/health/local/check_result.h"
#include "rendezvous/round/values/figures.h"
#include "rendezvous/round/values/round.h"

// What the nodes of a round found when they checked themselves together. Pure.

namespace hlaunch {

// What every node knows after a joint check. It is the same on all nodes. Nodes are identified by
// node rank.
struct JointFacts {
  int size = 0;                        // Nodes that should take part.
  std::map<int, std::string> hosts;    // Of the nodes that came; a name is empty if not asked.
  std::map<int, std::string> figures;  // What each node says of itself: numbers by Figure.
  std::map<int, std::string> sums;     // What each node says of the sum, if there was one.
  std::vector<PairResult> pairs = {};  // The measurements.
  PairVerdict verdict = {};            // What they prove.
  int rounds = 0;
};

// What a node says of the sum. Any other text is the reason why there was no sum.
inline constexpr char kSumExact[] = "exact";
inline constexpr char kSumWrong[] = "wrong";

// A value.
struct JointReport {
  bool joined = false;             // True if this node took part.
  std::string why;                 // Why it did not take part.
  int node_rank = 0;               // This node's rank.
  std::vector<PeerFinding> peers;  // At most kMaxFindings of peers and of links.
  std::vector<LinkFinding> links;
  std::string note;                // A problem that no node or link is blamed for, in one line.
  std::vector<std::string> hosts;  // By node rank; empty if the node did not come.
  std::vector<PairResult> pairs;
  std::vector<NodeFigures> figures;  // By node rank; empty unless asked for.
  int rounds = 0;
};

JointReport JudgeTogether(const JointFacts& facts);

// The best value of `node` with any other node; nothing if none of its pairs ended well.
std::optional<double> BestLatency(const std::vector<PairResult>& pairs, int node);
std::optional<double> BestSpeed(const std::vector<PairResult>& pairs, int node);

// The host name of a node, or its node rank if the name is unknown.
std::string HostOf(const JointReport& report, int node);

// One figure over all nodes. With scale kOffset it is a time of day, whose mean says nothing.
struct FigureSpread {
  const FigureRule& rule;
  Spread spread;
};
std::vector<FigureSpread> SpreadsOf(const JointReport& report);

// "processor 3 ms (node0) to 9 ms (node2), 4.5 ms on average": one line for each figure that more
// than one node knows.
std::vector<std::string> DescribeFigures(const JointReport& report);

// The report as a check's result; the detail holds all of it.
inline constexpr char kJointCheck[] = "joint check";
CheckResult ToResult(const JointReport& report);
// The way back; nothing if `result` is not a joint check's.
std::optional<JointReport> JointReportOf(const CheckResult& result);

}  // namespace hlaunch
