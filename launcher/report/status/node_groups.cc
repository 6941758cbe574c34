// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/node_groups.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launcher/text/printable.h"

namespace hlaunch {
namespace {

constexpr size_t kFewNodes = 24;    // Up to this number, all nodes are shown.
constexpr size_t kOddNodes = 12;    // More nodes that are alike are folded.
constexpr size_t kMostRows = 96;    // The limit for all odd nodes together.
constexpr size_t kMostPieces = 48;  // The limit for the names of a fold.

// Whether the nodes that stand so differ in what their state says.
bool HasOwnWords(NodeStanding standing) {
  return standing == NodeStanding::kUnfit || standing == NodeStanding::kUnknown;
}

const char* WordOf(const NodeStatus& node) {
  return kStandingWords[static_cast<size_t>(node.standing)];
}

// The letter for the workers of a node that stands so.
char LetterOf(NodeStanding standing) {
  switch (standing) {
    case NodeStanding::kRunning:
      return 'R';
    case NodeStanding::kSucceeded:
    case NodeStanding::kFinished:
      return '.';
    case NodeStanding::kChecking:
    case NodeStanding::kFit:
      return 'C';
    case NodeStanding::kReady:
      return 'W';
    case NodeStanding::kStopping:
      return 'S';
    case NodeStanding::kSilent:
    case NodeStanding::kNotConnected:
    case NodeStanding::kUnknown:
      return '?';
    case NodeStanding::kUnfit:
      return '!';
    case NodeStanding::kSpare:
    case NodeStanding::kDrained:
    case NodeStanding::kLeft:
      return '-';
  }
  return '?';
}

// Whether `node` had the worker that failed in the shown round.
bool Failed(const JobStatus& status, const NodeStatus& node) {
  const bool shown = status.failure && status.failed_round == status.round && node.node_rank >= 0;
  return shown && status.failure->node_rank == node.node_rank;
}

std::string Cells(const JobStatus& status, const NodeStatus& node) {
  const size_t count = std::min<size_t>(static_cast<size_t>(std::max(node.nproc, 0)), kMostCells);
  std::string cells(count, LetterOf(node.standing));
  if (!Failed(status, node)) return cells;
  const auto local = static_cast<size_t>(std::max(status.failure->local_rank, 0));
  if (local < cells.size()) cells[local] = 'X';
  return cells;
}

std::string RanksText(const NodeStatus& node) {
  if (node.node_rank < 0) return "";
  if (node.nproc <= 1) return absl::StrCat(node.first_rank);
  return absl::StrCat(node.first_rank, "-", node.first_rank + node.nproc - 1);
}

std::string Note(const JobStatus& status, const NodeStatus& node) {
  std::string note = PrintableLine(node.drain_reason);
  if (!Failed(status, node)) return note;
  return absl::StrCat("rank ", status.failure->rank, " failed", note.empty() ? "" : "; ", note);
}

NodeRow RowOf(const JobStatus& status, const NodeStatus& node) {
  NodeRow row;
  row.rank = node.node_rank < 0 ? "-" : absl::StrCat(node.node_rank);
  row.host = PrintableLine(node.host);
  row.ranks = RanksText(node);
  row.state = PrintableLine(node.state);
  row.light = LightOf(node);
  row.note = Note(status, node);
  row.cells = Cells(status, node);
  return row;
}

// Nodes with the same key are alike. Silent nodes are alike however long they are silent; nodes
// that are unfit for different reasons are not alike.
std::string KeyOf(const JobStatus& status, const NodeStatus& node) {
  const std::string key = HasOwnWords(node.standing) ? node.state : WordOf(node);
  const bool special = Failed(status, node) || !node.drain_reason.empty();
  return special ? absl::StrCat(key, ", ", Note(status, node)) : key;
}

NodeFold FoldOf(const std::vector<const NodeStatus*>& nodes) {
  NodeFold fold;
  fold.nodes = static_cast<int>(nodes.size());
  fold.state = HasOwnWords(nodes.front()->standing) ? PrintableLine(nodes.front()->state)
                                                    : WordOf(*nodes.front());
  fold.light = LightOf(*nodes.front());
  std::vector<std::string> hosts;
  for (const NodeStatus* node : nodes) {
    fold.workers += node->node_rank < 0 ? 0 : node->nproc;
    hosts.push_back(PrintableLine(node->host));
  }
  fold.hosts = CompactNames(hosts, kMostPieces);
  return fold;
}

// A name split into its last digits and what is before them.
struct NumberedName {
  std::string stem;
  std::string digits;
  int64_t number = -1;
};

NumberedName SplitName(const std::string& name) {
  size_t end = name.size();
  while (end > 0 && absl::ascii_isdigit(name[end - 1]) && name.size() - end < 9) --end;
  NumberedName split = {name.substr(0, end), name.substr(end)};
  if (!absl::SimpleAtoi(split.digits, &split.number)) split.number = -1;
  return split;
}

// Whether `b` is the name that follows `a`: node9 precedes node10, node09 precedes node10.
bool Follows(const NumberedName& a, const NumberedName& b) {
  if (a.stem != b.stem || a.number < 0 || b.number != a.number + 1) return false;
  const bool padded = a.digits.size() > 1 && a.digits[0] == '0';
  return a.digits.size() == b.digits.size() || (!padded && b.digits[0] != '0');
}

}  // namespace

Light LightOf(const NodeStatus& node) {
  switch (node.standing) {
    case NodeStanding::kRunning:
    case NodeStanding::kSucceeded:
      return node.drain_reason.empty() ? Light::kGood : Light::kWaiting;
    case NodeStanding::kChecking:
    case NodeStanding::kFit:
    case NodeStanding::kReady:
    case NodeStanding::kStopping:
      return Light::kWaiting;
    case NodeStanding::kUnfit:
    case NodeStanding::kSilent:
    case NodeStanding::kNotConnected:
    case NodeStanding::kLeft:
      return Light::kBad;
    case NodeStanding::kFinished:
    case NodeStanding::kSpare:
    case NodeStanding::kDrained:
    case NodeStanding::kUnknown:
      return Light::kIdle;
  }
  return Light::kIdle;
}

std::string CompactNames(const std::vector<std::string>& names, size_t most) {
  std::string text;
  size_t pieces = 0;
  for (size_t i = 0; i < names.size();) {
    size_t last = i;
    while (last + 1 < names.size() && Follows(SplitName(names[last]), SplitName(names[last + 1]))) {
      ++last;
    }
    if (pieces++ == most) {
      absl::StrAppend(&text, " and ", names.size() - i, " more");
      break;
    }
    absl::StrAppend(&text, i == 0 ? "" : ", ", names[i], last == i ? "" : "-",
                    last == i ? "" : names[last]);
    i = last + 1;
  }
  return text;
}

NodeGroups GroupNodes(const JobStatus& status) {
  NodeGroups groups;
  groups.unlisted = std::max(0, status.total_nodes - static_cast<int>(status.nodes.size()));
  std::map<std::string, std::vector<const NodeStatus*>> alike;
  for (const NodeStatus& node : status.nodes) alike[KeyOf(status, node)].push_back(&node);
  const bool few = status.nodes.size() <= kFewNodes;
  for (const NodeStatus& node : status.nodes) {
    const bool odd = few || alike[KeyOf(status, node)].size() <= kOddNodes;
    if (!odd) continue;
    if (groups.rows.size() < kMostRows) {
      groups.rows.push_back(RowOf(status, node));
    } else {
      ++groups.unlisted;
    }
  }
  for (const auto& [key, nodes] : alike) {
    if (!few && nodes.size() > kOddNodes) groups.folds.push_back(FoldOf(nodes));
  }
  std::sort(groups.folds.begin(), groups.folds.end(),
            [](const NodeFold& a, const NodeFold& b) { return a.nodes > b.nodes; });
  return groups;
}

}  // namespace hlaunch
