// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_line.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Where the value of `key` begins in `text`, whose tokens are separated by `divider`; npos if it is
// missing.
size_t ValueOf(absl::string_view text, absl::string_view key, char divider) {
  const std::string token = absl::StrCat(key, "=");
  for (size_t at = text.find(token); at != text.npos; at = text.find(token, at + 1)) {
    if (at == 0 || text[at - 1] == divider) return at + token.size();
  }
  return text.npos;
}

absl::Status Nonsense(absl::string_view line) {
  constexpr size_t kShown = 60;
  return absl::InvalidArgumentError(absl::StrCat("a line that is none of PMI-1's: '",
                                                 line.substr(0, kShown),
                                                 line.size() > kShown ? "…'" : "'"));
}

constexpr int kMaxRanks = 4096;  // In one call.

// The lines `key=value` of a block.
using Fields = absl::flat_hash_map<absl::string_view, absl::string_view>;

Fields FieldsOf(absl::string_view block) {
  Fields fields;
  for (const absl::string_view line : absl::StrSplit(block, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    fields.insert(parts);
  }
  return fields;
}

// The number of `key`; 0 if there is none.
int Number(const Fields& fields, absl::string_view key) {
  const auto found = fields.find(key);
  int number = 0;
  return found != fields.end() && absl::SimpleAtoi(found->second, &number) ? number : 0;
}

// The `count` values of `name`, numbered from `first`.
absl::StatusOr<std::vector<std::string>> Values(const Fields& fields, absl::string_view name,
                                                int first, int count) {
  std::vector<std::string> values;
  for (int i = first; i - first < count; ++i) {
    const auto found = fields.find(absl::StrCat(name, i));
    if (found == fields.end()) {
      return absl::InvalidArgumentError(absl::StrCat(name, i, " is missing in a spawn"));
    }
    values.emplace_back(found->second);
  }
  return values;
}

using PairList = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<PairList> Pairs(const Fields& fields, absl::string_view count, absl::string_view key,
                               absl::string_view value) {
  const int number = Number(fields, count);
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> keys, Values(fields, key, 0, number));
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> values, Values(fields, value, 0, number));
  PairList pairs;
  for (size_t i = 0; i < keys.size(); ++i) {
    pairs.emplace_back(std::move(keys[i]), std::move(values[i]));
  }
  return pairs;
}

}  // namespace

std::optional<std::string> PmiRequest::Word(absl::string_view key) const {
  const char divider = block ? '\n' : ' ';
  absl::string_view text = arguments;
  for (const absl::string_view free : {"value", "message"}) {
    const size_t value = block ? text.npos : ValueOf(text, free, divider);
    if (value != text.npos) text = text.substr(0, value);
  }
  const size_t at = ValueOf(text, key, divider);
  if (at == text.npos) return std::nullopt;
  return std::string(text.substr(at, text.find(divider, at) - at));
}

std::optional<std::string> PmiRequest::Rest(absl::string_view key) const {
  const size_t at = ValueOf(arguments, key, ' ');
  if (at == absl::string_view::npos) return std::nullopt;
  return arguments.substr(at);
}

std::optional<int> PmiRequest::Number(absl::string_view key) const {
  int number = 0;
  const std::optional<std::string> word = Word(key);
  if (!word || !absl::SimpleAtoi(*word, &number)) return std::nullopt;
  return number;
}

absl::Status AddProgram(const PmiRequest& block, SpawnRequest* request) {
  const Fields fields = FieldsOf(block.arguments);
  OtherProgram program;
  program.ranks = Number(fields, "nprocs");
  if (program.ranks <= 0 || program.ranks > kMaxRanks - RanksOf(*request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a spawn of ", program.ranks, " processes: from 1 to ", kMaxRanks, " can be"));
  }
  const auto name = fields.find("execname");
  if (name == fields.end() || name->second.empty()) {
    return absl::InvalidArgumentError("a spawn of no program");
  }
  program.argv.emplace_back(name->second);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                           Values(fields, "arg", 1, Number(fields, "argcnt")));
  program.argv.insert(program.argv.end(), words.begin(), words.end());
  HLAUNCH_ASSIGN_OR_RETURN(const PairList infos,
                           Pairs(fields, "info_num", "info_key_", "info_val_"));
  for (const auto& [key, value] : infos) {
    if (key == "wdir" || key == "wd") program.directory = value;
    if (key != "host" && key != "hosts") continue;
    for (const absl::string_view host : absl::StrSplit(value, ',', absl::SkipWhitespace())) {
      request->hosts.emplace_back(host);
    }
  }
  HLAUNCH_ASSIGN_OR_RETURN(PairList given,
                           Pairs(fields, "preput_num", "preput_key_", "preput_val_"));
  if (request->programs.empty()) request->given = std::move(given);  // All blocks contain the same.
  request->programs.push_back(std::move(program));
  return absl::OkStatus();
}

bool IsLastOfSpawn(const PmiRequest& block) {
  const int blocks = block.Number("totspawns").value_or(1);
  return block.Number("spawnssofar").value_or(blocks) >= blocks;
}

absl::StatusOr<std::vector<PmiRequest>> PmiReader::Take(absl::string_view bytes) {
  std::vector<PmiRequest> requests;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, end);
    if (begun_.size() + piece.size() > kMaxPmiLine) {
      return absl::InvalidArgumentError(
          absl::StrCat("a line of PMI-1 that is longer than ", kMaxPmiLine, " bytes"));
    }
    absl::StrAppend(&begun_, piece);
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 1);
    HLAUNCH_ASSIGN_OR_RETURN(std::optional<PmiRequest> request, TakeLine(begun_));
    begun_.clear();
    if (request) requests.push_back(*std::move(request));
  }
  return requests;
}

absl::StatusOr<std::optional<PmiRequest>> PmiReader::TakeLine(absl::string_view line) {
  if (block_) {
    if (line == "endcmd") return std::exchange(block_, std::nullopt);
    if (block_->arguments.size() + line.size() + 1 > kMaxPmiBlock) {
      return absl::InvalidArgumentError(
          absl::StrCat("a block of PMI-1 that is longer than ", kMaxPmiBlock, " bytes"));
    }
    absl::StrAppend(&block_->arguments, block_->arguments.empty() ? "" : "\n", line);
    return std::nullopt;
  }
  absl::string_view rest = line;
  if (absl::ConsumePrefix(&rest, "mcmd=")) {
    if (rest.empty()) return Nonsense(line);
    block_ = PmiRequest{std::string(rest), "", true};
    return std::nullopt;
  }
  if (!absl::ConsumePrefix(&rest, "cmd=")) return Nonsense(line);
  const size_t blank = std::min(rest.find(' '), rest.size());
  if (blank == 0) return Nonsense(line);
  return PmiRequest{std::string(rest.substr(0, blank)),
                    std::string(absl::StripPrefix(rest.substr(blank), " ")), false};
}

}  // namespace hlaunch
