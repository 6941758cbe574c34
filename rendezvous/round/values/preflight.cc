// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/preflight.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/round/values/figures.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

using Members = std::vector<PreflightReport>;
using Kind = PreflightVerdict::Kind;

constexpr size_t kNamed = 3;  // At most this many findings are named.

// A finding against one member.
struct Finding {
  size_t node = 0;
  bool bad = false;      // Else it is only worth reporting.
  bool certain = false;  // No second measurement is needed.
  double ratio = 1;      // The worst is excluded first.
  std::string why;
};

std::string Describe(const Members& members, const std::vector<Finding>& findings) {
  std::vector<std::string> words;
  for (const Finding& finding : findings) {
    if (words.size() == kNamed) break;
    words.push_back(absl::StrCat(members[finding.node].host, ": ", finding.why));
  }
  const size_t more = findings.size() - words.size();
  return absl::StrCat(absl::StrJoin(words, "; "),
                      more > 0 ? absl::StrCat("; and ", more, " more") : "");
}

// Compares the members with these indexes, which have the same hardware.
void Compare(const Members& members, const std::vector<size_t>& alike,
             std::map<size_t, Finding>& found) {
  for (size_t f = 0; f < kFigures; ++f) {
    const FigureRule& rule = RuleOf(static_cast<Figure>(f));
    std::vector<double> values;
    for (const size_t i : alike) values.push_back(members[i].health->figures.values[f]);
    const std::vector<Score> scores = ScoreFigure(values, rule);
    for (size_t at = 0; at < alike.size(); ++at) {
      if (scores[at].standing < Standing::kSlow) continue;
      const bool bad = scores[at].standing == Standing::kBad;
      Finding& finding = found[alike[at]];
      const bool worse =
          bad > finding.bad || (bad == finding.bad && scores[at].ratio > finding.ratio);
      if (finding.certain || (!finding.why.empty() && !worse)) continue;
      finding = {alike[at], bad, false, scores[at].ratio, DescribeScore(values, rule, at)};
    }
  }
}

// How many members have a finding against one member, and the worst of these findings.
struct Votes {
  size_t count = 0;
  const PeerFinding* word = nullptr;
};

// Counts what the members say of each other. A bad node may say anything, so only what more than
// half of the members say is believed; the rest is only worth reporting.
void CountVotes(const Members& members, std::map<size_t, Finding>& found) {
  std::map<size_t, Votes> votes;
  for (const PreflightReport& member : members) {
    if (member.health == nullptr || !member.health->joined) continue;
    for (const PeerFinding& peer : member.health->peers) {
      const auto node = static_cast<size_t>(peer.node_rank);
      if (node >= members.size()) continue;
      Votes& against = votes[node];
      ++against.count;
      if (against.word == nullptr || peer.kind > against.word->kind) against.word = &peer;
    }
  }
  for (const auto& [node, against] : votes) {
    const bool believed = against.count * 2 > members.size();
    const bool wrong = believed && against.word->kind == PeerFinding::Kind::kWrong;
    Finding& finding = found[node];
    if (finding.certain || (finding.bad && !wrong)) continue;
    finding = {node, believed, wrong, std::numeric_limits<double>::infinity(),
               believed ? against.word->why
                        : absl::StrCat(against.word->why, " (so say ", against.count, " of ",
                                       members.size(), " nodes)")};
  }
}

// Describes what is wrong with no node in particular.
std::string DescribeRest(const Members& members) {
  std::map<std::pair<int, int>, std::pair<size_t, std::string>> links;
  std::map<std::string, size_t> notes;
  for (const PreflightReport& member : members) {
    if (member.health == nullptr || !member.health->joined) continue;
    for (const LinkFinding& link : member.health->links) {
      const int most = static_cast<int>(members.size());
      if (link.a < 0 || link.b < 0 || link.a >= most || link.b >= most) continue;
      auto& [count, why] = links[{link.a, link.b}];
      ++count;
      why = link.why;
    }
    if (!member.health->note.empty()) ++notes[member.health->note];
  }
  std::vector<std::string> words;
  for (const auto& [ends, link] : links) {
    if (link.first * 2 <= members.size() || words.size() == kNamed) continue;
    words.push_back(absl::StrCat("between ", members[static_cast<size_t>(ends.first)].host, " and ",
                                 members[static_cast<size_t>(ends.second)].host, ": ",
                                 link.second));
  }
  for (const auto& [note, count] : notes) {
    if (count * 2 > members.size()) words.push_back(note);
  }
  return absl::StrJoin(words, "; ");
}

// Returns one finding for each member that has any, the worst first.
std::vector<Finding> Find(const Members& members) {
  std::map<size_t, Finding> found;
  std::map<absl::string_view, std::vector<size_t>> hardware;
  for (size_t i = 0; i < members.size(); ++i) {
    const NodeHealth* health = members[i].health;
    if (health == nullptr) continue;
    hardware[health->hardware].push_back(i);
    if (!health->fault.empty()) {
      found[i] = {i, true, true, std::numeric_limits<double>::infinity(), health->fault};
    }
  }
  for (const auto& [name, alike] : hardware) Compare(members, alike, found);
  CountVotes(members, found);
  std::vector<Finding> findings;
  for (auto& [node, finding] : found) findings.push_back(std::move(finding));
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    return std::tuple(a.bad, a.certain, a.ratio) > std::tuple(b.bad, b.certain, b.ratio);
  });
  return findings;
}

PreflightVerdict JudgeHealth(const Members& members, const PreflightRule& rule) {
  std::vector<Finding> findings = Find(members);
  PreflightVerdict verdict;
  verdict.reason = Describe(members, findings);
  if (const std::string rest = DescribeRest(members); !rest.empty()) {
    absl::StrAppend(&verdict.reason, verdict.reason.empty() ? "" : "; ", rest);
  }
  std::vector<Finding> proven;
  std::vector<Finding> doubted;
  for (const Finding& finding : findings) {
    if (!finding.bad) continue;
    const bool twice = rule.measured_again && members[finding.node].suspected;
    (finding.certain || twice ? proven : doubted).push_back(finding);
  }
  if (rule.action == PreflightAction::kWarn || (proven.empty() && doubted.empty())) return verdict;
  const auto conclude = [&](Kind kind, const std::vector<Finding>& against) {
    verdict.kind = kind;
    verdict.bad = true;
    verdict.reason = Describe(members, against);
    for (const Finding& finding : against) verdict.nodes.push_back(finding.node);
    return verdict;
  };
  if (proven.empty()) {
    return rule.measured_again ? verdict : conclude(Kind::kAgain, doubted);
  }
  if (rule.action == PreflightAction::kFail) return conclude(Kind::kFail, proven);
  if (static_cast<int>(proven.size()) > rule.may_exclude) {
    absl::StrAppend(&verdict.reason,
                    "; nobody is excluded: that is more than --preflight-share allows");
    return verdict;
  }
  const int spare = static_cast<int>(members.size()) + rule.standing_by - rule.min_nodes;
  std::erase_if(proven, [&](const Finding& finding) { return members[finding.node].stays; });
  if (static_cast<int>(proven.size()) > spare)
    proven.resize(static_cast<size_t>(std::max(0, spare)));
  if (!proven.empty()) return conclude(Kind::kExclude, proven);
  absl::StrAppend(&verdict.reason, "; nobody is excluded: the job cannot do without");
  return verdict;
}

}  // namespace

PreflightVerdict DecidePreflight(const Members& members, const PreflightRule& rule) {
  constexpr size_t kSeveral = 2;
  PreflightVerdict verdict;
  std::vector<std::string> silent, unfit;
  absl::string_view why;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].answered && members[i].unfit.empty()) continue;
    verdict.nodes.push_back(i);
    if (members[i].answered && why.empty()) why = members[i].unfit;
    (members[i].answered ? unfit : silent).emplace_back(members[i].host);
  }
  if (verdict.nodes.empty()) return JudgeHealth(members, rule);
  const size_t others = members.size() - 1;
  const bool master_silent = !members[0].answered;
  if (master_silent && others >= kSeveral && verdict.nodes.size() == members.size()) {
    // The others wait for the master, so their silence proves nothing against them.
    verdict.nodes.assign(1, 0);
    verdict.reason = absl::StrCat(members[0].host, " did not answer, and none of the ", others,
                                  " other nodes can use it as master");
  } else if (unfit.size() == others && others >= kSeveral && verdict.nodes.front() != 0) {
    verdict.nodes.assign(1, 0);
    verdict.reason = absl::StrCat("none of the ", others, " other nodes can use ", members[0].host,
                                  " as master: ", why);
  } else {
    if (!unfit.empty()) verdict.reason = absl::StrCat(NameSome(unfit), ": ", why);
    if (!silent.empty()) {
      absl::StrAppend(&verdict.reason, verdict.reason.empty() ? "" : "; ", NameSome(silent),
                      " did not answer");
    }
  }
  const int left = static_cast<int>(members.size() - verdict.nodes.size()) + rule.standing_by;
  verdict.kind = left >= rule.min_nodes ? Kind::kExclude : Kind::kFail;
  return verdict;
}

}  // namespace hlaunch
