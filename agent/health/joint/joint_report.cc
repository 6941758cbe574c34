// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/joint_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "rendezvous/round/values/figures.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

using nlohmann::json;

constexpr int kDigits = 4;  // For figures that are shown side by side.
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

std::string HostOf(const JointFacts& facts, int node) {
  const auto it = facts.hosts.find(node);
  const bool known = it != facts.hosts.end() && !it->second.empty();
  return known ? it->second : absl::StrCat("node rank ", node);
}

std::string HostsOf(const JointFacts& facts, const std::vector<int>& nodes) {
  std::vector<std::string> hosts;
  for (const int node : nodes) hosts.push_back(HostOf(facts, node));
  return NameSome(hosts);
}

bool Has(const NodePair& pair, int node) { return pair.a == node || pair.b == node; }

std::string SpeedText(double gbit_s, double latency_us) {
  return absl::StrFormat("%.3g Gbit/s and %.3g us", gbit_s, latency_us);
}

// What the best pair reaches, for comparison.
std::string BestOfAll(const std::vector<PairResult>& pairs) {
  const PairResult* best = nullptr;
  for (const PairResult& pair : pairs) {
    if (!pair.failed && (best == nullptr || pair.gbit_s > best->gbit_s)) best = &pair;
  }
  return best == nullptr
             ? ""
             : absl::StrCat(" where others have up to ", SpeedText(best->gbit_s, best->latency_us));
}

// Says why `node` is bad, by its pairs.
PeerFinding DescribeNode(const JointFacts& facts, int node) {
  std::vector<int> wrong_with, failed_with;
  std::string why;
  for (const PairResult& result : facts.pairs) {
    if (!Has(result.pair, node) || !result.failed) continue;
    const int other = result.pair.a == node ? result.pair.b : result.pair.a;
    // A wrong result with a node that is bad itself may be that node's fault.
    const auto& bad = facts.verdict.bad_nodes;
    const bool doubtful = std::find(bad.begin(), bad.end(), other) != bad.end();
    (result.wrong && !doubtful ? wrong_with : failed_with).push_back(other);
    if (!result.wrong && why.empty()) why = result.why;
  }
  std::sort(wrong_with.begin(), wrong_with.end());
  if (!wrong_with.empty()) {
    return {node, PeerFinding::Kind::kWrong,
            absl::StrCat("numbers that it added up with ", HostsOf(facts, wrong_with),
                         " came out wrong")};
  }
  const std::optional<double> speed = BestSpeed(facts.pairs, node);
  if (speed) {
    return {node, PeerFinding::Kind::kSlow,
            absl::StrCat(SpeedText(*speed, *BestLatency(facts.pairs, node)),
                         " with other nodes at best", BestOfAll(facts.pairs))};
  }
  return {
      node, PeerFinding::Kind::kMissing,
      absl::StrCat("no measurement with ", HostsOf(facts, failed_with), " came to an end: ", why)};
}

LinkFinding DescribeLink(const JointFacts& facts, const NodePair& link) {
  std::string why;
  double speed = 0, latency = 0;
  for (const PairResult& result : facts.pairs) {
    if (result.pair != link) continue;
    if (result.failed) why = result.why;
    if (result.gbit_s <= speed) continue;
    speed = result.gbit_s;
    latency = result.latency_us;
  }
  if (why.empty()) why = absl::StrCat(SpeedText(speed, latency), BestOfAll(facts.pairs));
  return {link.a, link.b, why};
}

// Describes a problem that no node or link is blamed for.
std::string DescribeRest(const JointFacts& facts) {
  std::vector<int> wrong;
  std::string why;
  for (const auto& [node, sum] : facts.sums) {
    if (sum == kSumWrong) {
      wrong.push_back(node);
    } else if (sum != kSumExact && why.empty()) {
      why = sum;
    }
  }
  std::string failed;
  for (const PairResult& result : facts.pairs) {
    if (result.failed) failed = result.why;
  }
  if (!facts.verdict.open.empty() && !failed.empty()) {
    return absl::StrCat("one of ", HostsOf(facts, facts.verdict.open),
                        " at least is bad, and nobody can tell which: ", failed);
  }
  if (!facts.verdict.bad_nodes.empty() || !facts.verdict.bad_links.empty()) return "";
  if (!wrong.empty()) {
    return absl::StrCat("the sum of all nodes' numbers came out wrong on ", HostsOf(facts, wrong),
                        ", and no two nodes show why");
  }
  return why.empty() ? "" : absl::StrCat("the sum of all nodes' numbers was not done: ", why);
}

// The figures of `node`: what the node says of itself, and what its pairs show.
NodeFigures FiguresOf(const JointFacts& facts, int node) {
  NodeFigures figures;
  if (const auto it = facts.figures.find(node); it != facts.figures.end()) {
    const std::vector<std::string> words = absl::StrSplit(it->second, ' ');
    for (size_t f = 0; f < std::min(kFigures, words.size()); ++f) {
      if (!absl::SimpleAtod(words[f], &figures.values[f])) figures.values[f] = kUnknown;
    }
  }
  figures[Figure::kLatency] = BestLatency(facts.pairs, node).value_or(kUnknown);
  figures[Figure::kBandwidth] = BestSpeed(facts.pairs, node).value_or(kUnknown);
  return figures;
}

// What to do about what was found.
std::string AdviceOf(const JointReport& report) {
  std::string advice;
  const auto add = [&](absl::string_view words) {
    absl::StrAppend(&advice, advice.empty() ? "" : "; ", words);
  };
  for (const PeerFinding& peer : report.peers) {
    const std::string host = HostOf(report, peer.node_rank);
    switch (peer.kind) {
      case PeerFinding::Kind::kWrong:
        add(absl::StrCat("use ", host, " for nothing before its memory, processors and network ",
                         "card have been tested"));
        break;
      case PeerFinding::Kind::kSlow:
        add(absl::StrCat("compare speed and errors of ", host, "'s link with others (ethtool, ",
                         "ibstat), then cable and switch port"));
        break;
      case PeerFinding::Kind::kMissing:
        add(absl::StrCat("see whether ", host, " lives, and whether a firewall between the nodes ",
                         "drops what comes to free ports"));
        break;
    }
  }
  for (const LinkFinding& link : report.links) {
    add(absl::StrCat("look after the switches between ", HostOf(report, link.a), " and ",
                     HostOf(report, link.b)));
  }
  if (!report.note.empty() && advice.empty()) {
    add("start `hlaunch doctor` on these nodes and one that is known to be good");
  }
  return advice;
}

json ToJson(const PairResult& result) {
  return {{"a", result.pair.a},
          {"b", result.pair.b},
          {"failed", result.failed},
          {"wrong", result.wrong},
          {"latency_us", result.latency_us},
          {"gbit_s", result.gbit_s},
          {"why", result.why}};
}

}  // namespace

JointReport JudgeTogether(const JointFacts& facts) {
  JointReport report;
  report.joined = true;
  report.pairs = facts.pairs;
  report.rounds = facts.rounds;
  for (int node = 0; node < facts.size; ++node) {
    const auto it = facts.hosts.find(node);
    report.hosts.push_back(it != facts.hosts.end() ? it->second : "");
    if (it == facts.hosts.end() && report.peers.size() < kMaxFindings) {
      report.peers.push_back(
          {node, PeerFinding::Kind::kMissing, "it did not come to the joint check in time"});
    }
  }
  for (const int node : facts.verdict.bad_nodes) {
    if (report.peers.size() < kMaxFindings) report.peers.push_back(DescribeNode(facts, node));
  }
  for (const NodePair& link : facts.verdict.bad_links) {
    if (report.links.size() < kMaxFindings) report.links.push_back(DescribeLink(facts, link));
  }
  report.note = DescribeRest(facts);
  if (!facts.figures.empty()) {
    for (int node = 0; node < facts.size; ++node) report.figures.push_back(FiguresOf(facts, node));
  }
  return report;
}

std::optional<double> BestLatency(const std::vector<PairResult>& pairs, int node) {
  std::optional<double> best;
  for (const PairResult& result : pairs) {
    if (result.failed || !Has(result.pair, node)) continue;
    if (!best || result.latency_us < *best) best = result.latency_us;
  }
  return best;
}

std::optional<double> BestSpeed(const std::vector<PairResult>& pairs, int node) {
  std::optional<double> best;
  for (const PairResult& result : pairs) {
    if (result.failed || !Has(result.pair, node)) continue;
    if (!best || result.gbit_s > *best) best = result.gbit_s;
  }
  return best;
}

std::string HostOf(const JointReport& report, int node) {
  const auto index = static_cast<size_t>(node);
  const bool known = index < report.hosts.size() && !report.hosts[index].empty();
  return known ? report.hosts[index] : absl::StrCat("node rank ", node);
}

std::vector<FigureSpread> SpreadsOf(const JointReport& report) {
  std::vector<FigureSpread> spreads;
  for (size_t f = 0; f < kFigures; ++f) {
    std::vector<double> values;
    for (const NodeFigures& figures : report.figures) values.push_back(figures.values[f]);
    if (const std::optional<Spread> spread = SpreadOf(values)) {
      spreads.push_back({RuleOf(static_cast<Figure>(f)), *spread});
    }
  }
  return spreads;
}

std::vector<std::string> DescribeFigures(const JointReport& report) {
  std::vector<std::string> lines;
  for (const auto& [rule, spread] : SpreadsOf(report)) {
    if (spread.known < 2 || rule.scale == Scale::kOffset) continue;
    lines.push_back(absl::StrCat(rule.name, " ", FigureText(spread.min, rule.unit, kDigits), " (",
                                 HostOf(report, static_cast<int>(spread.min_at)), ") to ",
                                 FigureText(spread.max, rule.unit, kDigits), " (",
                                 HostOf(report, static_cast<int>(spread.max_at)), "), ",
                                 FigureText(spread.mean, rule.unit, kDigits), " on average"));
  }
  return lines;
}

CheckResult ToResult(const JointReport& report) {
  json peers = json::array(), links = json::array(), pairs = json::array();
  for (const PeerFinding& peer : report.peers) {
    peers.push_back(
        {{"node", peer.node_rank}, {"kind", static_cast<int>(peer.kind)}, {"why", peer.why}});
  }
  for (const LinkFinding& link : report.links) {
    links.push_back({{"a", link.a}, {"b", link.b}, {"why", link.why}});
  }
  for (const PairResult& result : report.pairs) pairs.push_back(ToJson(result));
  json figures = json::array();
  for (const NodeFigures& each : report.figures) {
    json values = json::array();  // Null if unknown.
    for (const double value : each.values) {
      values.push_back(std::isfinite(value) ? json(value) : json());
    }
    figures.push_back(std::move(values));
  }
  const json all = {{"figures", figures},
                    {"joined", report.joined},
                    {"why", report.why},
                    {"peers", peers},
                    {"links", links},
                    {"note", report.note},
                    {"node_rank", report.node_rank},
                    {"hosts", report.hosts},
                    {"pairs", pairs},
                    {"rounds", report.rounds}};
  CheckResult result{kJointCheck, {}, "", CheckState::kOk, "", ""};
  result.detail = all.dump(-1, ' ', false, json::error_handler_t::replace);
  std::vector<std::string> words;
  for (const PeerFinding& peer : report.peers) {
    words.push_back(absl::StrCat(HostOf(report, peer.node_rank), ": ", peer.why));
  }
  for (const LinkFinding& link : report.links) {
    words.push_back(absl::StrCat("between ", HostOf(report, link.a), " and ",
                                 HostOf(report, link.b), ": ", link.why));
  }
  if (!report.note.empty()) words.push_back(report.note);
  result.reason = report.joined ? absl::StrJoin(words, "; ") : report.why;
  if (!words.empty()) {
    result.state = CheckState::kWarn;
    result.advice = AdviceOf(report);
  } else if (!report.joined) {
    result.state = CheckState::kUnknown;
  }
  return result;
}

std::optional<JointReport> JointReportOf(const CheckResult& result) try {
  if (result.name != kJointCheck || result.detail.empty()) return {};
  const json all = json::parse(result.detail);
  JointReport report;
  report.joined = all.at("joined").get<bool>();
  report.why = all.at("why").get<std::string>();
  report.note = all.at("note").get<std::string>();
  report.hosts = all.at("hosts").get<std::vector<std::string>>();
  report.rounds = all.at("rounds").get<int>();
  report.node_rank = all.at("node_rank").get<int>();
  for (const json& peer : all.at("peers")) {
    const int kind = peer.at("kind").get<int>();
    if (kind < 0 || kind > static_cast<int>(PeerFinding::Kind::kWrong)) return {};
    report.peers.push_back({peer.at("node").get<int>(), static_cast<PeerFinding::Kind>(kind),
                            peer.at("why").get<std::string>()});
  }
  for (const json& link : all.at("links")) {
    report.links.push_back(
        {link.at("a").get<int>(), link.at("b").get<int>(), link.at("why").get<std::string>()});
  }
  for (const json& pair : all.at("pairs")) {
    report.pairs.push_back({{pair.at("a").get<int>(), pair.at("b").get<int>()},
                            pair.at("failed").get<bool>(),
                            pair.at("latency_us").get<double>(),
                            pair.at("gbit_s").get<double>(),
                            pair.at("wrong").get<bool>(),
                            pair.at("why").get<std::string>()});
  }
  for (const json& values : all.at("figures")) {
    NodeFigures figures;
    for (size_t f = 0; f < std::min(kFigures, values.size()); ++f) {
      if (values[f].is_number()) figures.values[f] = values[f].get<double>();
    }
    report.figures.push_back(figures);
  }
  return report;
} catch (const json::exception&) {
  return {};
}

}  // namespace hlaunch
