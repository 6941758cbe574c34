// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/rankfile.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/machine/binding/plan_binding.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr int kMostRanks = 1 << 16;

struct RankLine {
  std::string host;
  std::string slots;  // "0:1", "0-3"
  int number = 0;     // The number of the line.
};
using RankLines = std::map<int, RankLine>;  // By rank.

struct HostRanks {
  std::string host;
  std::vector<std::string> slots;  // By local rank.
};

absl::Status At(string_view file, int number, string_view why) {
  return InvalidArgumentError(absl::StrCat(PrintableLine(file), ":", number, ": ", why));
}

bool IsHost(string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("-._@", c);
  }) && text[0] != '-';
}

// "rank 0=host slot=0:1"
absl::Status TakeLine(string_view text, string_view file, int number, RankLines& ranks) {
  std::string spaced(text);
  for (char& c : spaced) c = c == '=' || absl::ascii_isspace(c) ? ' ' : c;
  const std::vector<std::string> words = absl::StrSplit(spaced, ' ', absl::SkipEmpty());
  const bool whole = words.size() == 5 && words[0] == "rank" &&
                     (words[3] == "slot" || words[3] == "slots") &&
                     std::count(text.begin(), text.end(), '=') == 2;
  int rank = 0;
  if (!whole || !ParseInt(words[1], 0, kMostRanks - 1, &rank)) {
    return At(file, number, "expected rank N=HOST slot=SLOTS, such as rank 0=node0 slot=0:1");
  }
  if (!IsHost(words[2])) {
    return At(file, number,
              absl::StrCat("'", PrintableLine(words[2]), "': expected a host's name"));
  }
  if (!IsSlotList(words[4])) {
    return At(file, number,
              absl::StrCat("slot=", PrintableLine(words[4]),
                           ": expected cores, such as 2, 0-3 or socket:core 0:1"));
  }
  const auto [there, is_new] = ranks.insert({rank, {words[2], words[4], number}});
  if (is_new) return absl::OkStatus();
  return At(file, number,
            absl::StrCat("rank ", rank, " comes again; it is in line ", there->second.number));
}

absl::StatusOr<RankLines> ParseLines(string_view text, string_view file) {
  RankLines ranks;
  int number = 0;
  for (string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (!line.empty()) HLAUNCH_RETURN_IF_ERROR(TakeLine(line, file, number, ranks));
  }
  if (ranks.empty())
    return InvalidArgumentError(absl::StrCat(PrintableLine(file), ": it is empty"));
  return ranks;
}

absl::StatusOr<std::vector<HostRanks>> HostByHost(const RankLines& ranks, string_view file) {
  std::vector<HostRanks> hosts;
  int next = 0;
  for (const auto& [rank, line] : ranks) {
    if (rank != next++) {
      return InvalidArgumentError(absl::StrCat(PrintableLine(file), ": rank ", next - 1,
                                               " is missing, and ", rank, " is there"));
    }
    if (hosts.empty() || hosts.back().host != line.host) {
      if (std::any_of(hosts.begin(), hosts.end(),
                      [&line = line](const HostRanks& each) { return each.host == line.host; })) {
        return At(file, line.number,
                  absl::StrCat("rank ", rank, " is on ", line.host,
                               " once more, behind other hosts: "
                               "ranks are numbered host by host"));
      }
      hosts.push_back({line.host, {}});
    }
    hosts.back().slots.push_back(line.slots);
  }
  return hosts;
}

}  // namespace

absl::Status TakeRankfile(string_view text, string_view file, MpirunLine& line) {
  HLAUNCH_ASSIGN_OR_RETURN(const RankLines ranks, ParseLines(text, file));
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<HostRanks> hosts, HostByHost(ranks, file));
  const std::vector<std::string>& slots = hosts.front().slots;
  for (const HostRanks& host : hosts) {
    if (host.slots == slots) continue;
    return InvalidArgumentError(absl::StrCat(PrintableLine(file), ": the ranks of ", host.host,
                                             " have other slots than those "
                                             "of ",
                                             hosts.front().host,
                                             ", and all hosts are bound alike; write --bind-to"));
  }
  const std::string count = absl::StrCat(ranks.size());
  if (!line.ranks.empty() && line.ranks != count) {
    return InvalidArgumentError(
        absl::StrCat("-n ", line.ranks, ": ", PrintableLine(file), " has ", count, " ranks"));
  }
  if (!line.hosts.empty() || !line.hostfile.empty() || !line.bind.empty() || !line.cores.empty() ||
      !line.per_node.empty()) {
    return InvalidArgumentError(
        "--rankfile says hosts and cores of all ranks: leave --host, --hostfile, --map-by and "
        "--bind-to out");
  }
  line.ranks = count;
  line.bind = absl::StrCat("slots:", absl::StrJoin(slots, ";"));
  line.hosts = absl::StrJoin(hosts, ",", [](std::string* out, const HostRanks& host) {
    absl::StrAppend(out, host.host, ":", host.slots.size());
  });
  return absl::OkStatus();
}

}  // namespace hlaunch
