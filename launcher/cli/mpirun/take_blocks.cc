// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/take_blocks.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/hosts/exported.h"
#include "launcher/cli/mpirun/read_line.h"
#include "launcher/cli/mpirun/take_words.h"
#include "launcher/text/other_program.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/shell_words.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using List = std::vector<std::string>;

constexpr char kColon[] = ":";
constexpr char kWdir[] = "--wdir=";
constexpr size_t kMostBlocks = 4096;

// One program and the options before it.
struct Block {
  MpirunLine line;
  List command;
  std::string where;  // "program 2", "FILE:3"
};

absl::Status Within(string_view where, const absl::Status& why) {
  if (why.ok()) return why;
  return InvalidArgumentError(absl::StrCat(PrintableLine(where), ": ", why.message()));
}

absl::StatusOr<Block> ReadBlock(const List& words, const Environment& environment,
                                std::string where) {
  absl::StatusOr<ReadLine> read = ReadMpirunLine(words, /*by_that_name=*/true);
  if (!read.ok()) return Within(where, read.status());
  LeaveOutUnset(environment, read->line);
  auto begin = words.begin() + static_cast<std::ptrdiff_t>(read->used);
  if (begin != words.end() && *begin == "--") ++begin;
  if (begin == words.end() || begin->empty()) {
    return Within(where, InvalidArgumentError("no program given"));
  }
  return Block{read->line, List(begin, words.end()), std::move(where)};
}

// The programs after the colons of `words`.
absl::StatusOr<std::vector<Block>> BlocksBehind(const List& words, const Environment& environment) {
  std::vector<Block> blocks;
  auto begin = std::find(words.begin(), words.end(), kColon);
  while (begin != words.end()) {
    const auto end = std::find(begin + 1, words.end(), kColon);
    HLAUNCH_ASSIGN_OR_RETURN(Block block, ReadBlock(List(begin + 1, end), environment,
                                                    absl::StrCat("program ", blocks.size() + 2)));
    blocks.push_back(std::move(block));
    begin = end;
  }
  return blocks;
}

absl::StatusOr<std::vector<Block>> BlocksIn(const std::string& file, const ReadTextFn& read,
                                            const Environment& environment) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string text, read(file));
  std::vector<Block> blocks;
  int number = 0;
  for (const string_view line : absl::StrSplit(text, '\n')) {
    std::string where = absl::StrCat(file, ":", ++number);
    const string_view bare = absl::StripAsciiWhitespace(line);
    if (bare.empty() || bare[0] == '#') continue;
    const absl::StatusOr<List> words = SplitWords(bare);
    if (!words.ok()) return Within(where, words.status());
    HLAUNCH_ASSIGN_OR_RETURN(Block block, ReadBlock(*words, environment, std::move(where)));
    blocks.push_back(std::move(block));
    if (blocks.size() > kMostBlocks) return Within(file, InvalidArgumentError("too many programs"));
  }
  if (blocks.empty()) return Within(file, InvalidArgumentError("it has no program"));
  return blocks;
}

// Moves the options that are for all programs out of the first block and returns them.
MpirunLine TakeCommon(Block& first) {
  MpirunLine common = first.line;
  MpirunLine own;
  std::multiset<std::string> variables(common.own_variables.begin(), common.own_variables.end());
  common.words.clear();
  common.own_variables.clear();
  const List& words = first.line.words;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool variable = words[i] == "-x" && i + 1 < words.size();
    const auto found = variable ? variables.find(words[i + 1]) : variables.end();
    List& list =
        found != variables.end() || absl::StartsWith(words[i], kWdir) ? own.words : common.words;
    if (found != variables.end()) variables.erase(found);
    list.push_back(words[i]);
    if (variable) list.push_back(words[++i]);
  }
  std::swap(own.ranks, common.ranks);
  own.every_word = true;
  first.line = own;
  return common;
}

// Whether `line` has only options of its own program, or repeats those for all programs.
bool SaysOnlyItsOwn(const MpirunLine& line, const MpirunLine& common) {
  const auto same = [](const std::string& mine, const std::string& theirs) {
    return mine.empty() || mine == theirs;
  };
  return line.per_node.empty() && line.hostfile.empty() && line.app_file.empty() &&
         line.rankfile.empty() && line.shell.empty() && line.shell_arguments.empty() &&
         line.reads_stdin && same(line.bind, common.bind) && same(line.cores, common.cores) &&
         same(line.prefix, common.prefix);
}

absl::Status IsForAll(string_view what) {
  return InvalidArgumentError(
      absl::StrCat(what,
                   " for all programs: write it before the first; each has -n, -x, --wdir and "
                   "--host of its own"));
}

absl::StatusOr<OtherProgramWish> WishOf(const Block& block, const MpirunLine& common,
                                        const Environment& environment) {
  OtherProgramWish wish;
  wish.command = block.command;
  if (!SaysOnlyItsOwn(block.line, common)) return IsForAll("an option of it is");
  if (!ParseInt(block.line.ranks, 1, kMostRanksOfProgram, &wish.ranks)) {
    return InvalidArgumentError("of several programs each needs -n N, its number of ranks");
  }
  HostWish variables;
  variables.exported = "none";
  const List& words = block.line.words;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-x" && i + 1 < words.size()) {
      variables.variables.push_back(words[++i]);
    } else if (absl::StartsWith(words[i], kWdir)) {
      wish.directory = words[i].substr(sizeof kWdir - 1);
    } else {
      return IsForAll(absl::StrCat(PrintableLine(words[i]), " is"));
    }
  }
  HLAUNCH_ASSIGN_OR_RETURN(wish.variables, InheritedVariables(variables, environment, ""));
  return wish;
}

// The hosts of all programs if each names its own, as in "a:2,b:1" in the order of ranks; empty if
// none does.
absl::StatusOr<std::string> JoinHosts(const std::vector<Block>& blocks) {
  std::vector<TargetHost> all;
  std::set<std::string> seen;
  for (const Block& block : blocks) {
    if (block.line.hosts.empty() != blocks.front().line.hosts.empty()) {
      return Within(block.where, InvalidArgumentError("--host for each program, or once for all, "
                                                      "before the first one's -n"));
    }
    if (block.line.hosts.empty()) continue;
    int ranks = 0;
    ParseInt(block.line.ranks, 1, kMostRanksOfProgram, &ranks);
    absl::StatusOr<std::vector<TargetHost>> hosts = ParseHosts(block.line.hosts);
    absl::Status divided = hosts.status();
    if (hosts.ok()) divided = DivideRanks(ranks, *hosts);
    if (!divided.ok()) return Within(block.where, divided);
    for (const TargetHost& host : *hosts) {
      if (!all.empty() && all.back().Login() == host.Login()) {
        all.back().slots = all.back().slots.value_or(0) + host.slots.value_or(0);
        continue;
      }
      all.push_back(host);
      if (seen.insert(host.Login()).second) continue;
      return Within(block.where, InvalidArgumentError(absl::StrCat(
                                     "host ", PrintableLine(host.name),
                                     " comes a second time, behind others, and ranks are numbered "
                                     "host by host: put its programs behind each other")));
    }
  }
  std::string text;
  for (const TargetHost& host : all) {
    absl::StrAppend(&text, text.empty() ? "" : ",", host.Login(), ":", host.slots.value_or(1));
  }
  return text;
}

absl::Status JoinBlocks(const std::vector<Block>& blocks, const Environment& environment,
                        MpirunLine& common) {
  std::vector<OtherProgramWish> wishes;
  for (const Block& block : blocks) {
    absl::StatusOr<OtherProgramWish> wish = WishOf(block, common, environment);
    if (!wish.ok()) return Within(block.where, wish.status());
    wishes.push_back(*std::move(wish));
    common.remarks.insert(common.remarks.end(), block.line.remarks.begin(),
                          block.line.remarks.end());
    if (RanksOf(wishes) == kMostRanksOfProgram) {
      return Within(block.where, InvalidArgumentError("too many ranks"));
    }
  }
  HLAUNCH_ASSIGN_OR_RETURN(const std::string hosts, JoinHosts(blocks));
  if (!hosts.empty()) common.hosts = hosts;
  common.ranks = absl::StrCat(RanksOf(wishes));
  // The other programs must not inherit what is only for the first.
  const bool plain = wishes.front().variables.empty() && wishes.front().directory.empty();
  for (size_t i = plain ? 1 : 0; i < wishes.size(); ++i) {
    common.words.push_back(absl::StrCat("--also=", OtherProgramText(wishes[i])));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeBlocks(const ReadTextFn& read, const Environment& environment, MpirunLine& line,
                        List& command) {
  std::vector<Block> blocks;
  if (!line.app_file.empty()) {
    if (!command.empty()) {
      return InvalidArgumentError(absl::StrCat("--app names a file of programs: leave out ",
                                               PrintableLine(command.front())));
    }
    HLAUNCH_ASSIGN_OR_RETURN(blocks, BlocksIn(line.app_file, read, environment));
  } else {
    HLAUNCH_ASSIGN_OR_RETURN(blocks, BlocksBehind(command, environment));
    if (blocks.empty()) return absl::OkStatus();
    auto begin = command.begin();
    if (begin != command.end() && *begin == "--") ++begin;
    Block first{line, List(begin, std::find(begin, command.end(), kColon)), "program 1"};
    if (first.command.empty()) return InvalidArgumentError("no program before ':'");
    const bool each = !blocks.front().line.hosts.empty();
    line = TakeCommon(first);
    if (each) std::swap(first.line.hosts, line.hosts);
    blocks.insert(blocks.begin(), std::move(first));
  }
  command = blocks.front().command;
  return JoinBlocks(blocks, environment, line);
}

}  // namespace hlaunch
