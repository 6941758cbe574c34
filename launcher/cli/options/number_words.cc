// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/number_words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/text/other_program.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

constexpr char kWorkersOption[] = "--nproc-per-node";

struct NumberWord {
  string_view word;
  NumberCounts counts;
};
constexpr NumberWord kNumberWords[] = {
    {"-n", NumberCounts::kAllRanks},
    {"-np", NumberCounts::kAllRanks},
    {"--n", NumberCounts::kAllRanks},
    {"--np", NumberCounts::kAllRanks},
    {"--num-processes", NumberCounts::kAllRanks},
    {"--num-gpus", NumberCounts::kEachNode},
    {"--gpus", NumberCounts::kUnclear},
    {"--ngpus", NumberCounts::kUnclear},
};

const NumberWord* FindNumberWord(string_view word) {
  const std::string name = absl::StrReplaceAll(word, {{"_", "-"}});
  for (const NumberWord& row : kNumberWords) {
    if (name == row.word) return &row;
  }
  return nullptr;
}

// Divides "-n2" and "-np2", which mpirun's users type, into two words, and "--gpus=2" as well.
std::pair<std::string, std::optional<std::string>> WordAndValue(const std::string& typed) {
  if (const size_t equals = typed.find('='); equals != std::string::npos) {
    return {typed.substr(0, equals), typed.substr(equals + 1)};
  }
  for (const string_view name : {"-np", "-n"}) {
    string_view value = typed;
    if (!absl::ConsumePrefix(&value, name) || value.empty()) continue;
    if (std::all_of(value.begin(), value.end(), absl::ascii_isdigit)) {
      return {std::string(name), std::string(value)};
    }
  }
  return {typed, std::nullopt};
}

absl::StatusOr<TypedNumber> NumberOf(const NumberWord& row, std::string word,
                                     const std::string& value) {
  TypedNumber number{std::move(word), row.counts, 0};
  if (ParseInt(value, 1, kMaxNproc, &number.value)) return number;
  return InvalidArgumentError(absl::StrCat(
      PrintableLine(number.word), " '", PrintableLine(value), "': expected a number from 1 to ",
      kMaxNproc,
      row.counts == NumberCounts::kAllRanks ? ""
                                            : "; --nproc-per-node gpu is a worker for each GPU"));
}

// The options in one word, as in "--nnodes=2" or "-vm".
struct OptionsOfWord {
  // Each with how it is typed. Empty: the word is no option.
  std::vector<std::pair<const OptionRow*, std::string>> options;
  bool needs_value = false;  // The next word is the value of the last one.
};

OptionsOfWord OptionsOf(const std::string& word) {
  const bool is_cluster = word.size() > 2 && word[1] != '-';
  if (!is_cluster) {
    const OptionRow* const row = FindOption(word);
    if (row == nullptr) return {};
    OptionsOfWord one;
    one.options.emplace_back(row, word.substr(0, word.find('=')));
    one.needs_value = row->takes_value() && !absl::StrContains(word, "=");
    return one;
  }
  OptionsOfWord found;
  for (size_t i = 1; i < word.size(); ++i) {
    const std::string one = absl::StrCat("-", string_view(word).substr(i, 1));
    const OptionRow* const row = FindOption(one);
    if (row == nullptr) return {};
    found.options.emplace_back(row, one);
    if (!row->takes_value()) continue;
    found.needs_value = i + 1 == word.size();
    break;
  }
  return found;
}

// Writes a long option with both dashes and underscores, as "--nproc-per_node=3", as the table
// does.
std::string WithOneSpelling(const std::string& word) {
  const size_t size = word.find('=');
  const OptionRow* const row = absl::StartsWith(word, "--") ? FindOption(word) : nullptr;
  if (row == nullptr) return word;
  const std::string name = word.substr(0, size);
  if (name == row->name || name == Underscored(row->name)) return word;
  return absl::StrCat(row->name, size == std::string::npos ? "" : word.substr(size));
}

std::string Shown(const TypedNumber& number) {
  return absl::StrCat(number.word, " ", number.value);
}

// The ranks of each node, if they divide evenly; else "N".
std::string ShareOf(const TypedNumber& number, const JobPolicy& policy) {
  const bool fixed = policy.min_nodes == policy.max_nodes;
  return fixed && number.value % policy.max_nodes == 0
             ? absl::StrCat(number.value / policy.max_nodes)
             : "N";
}

// Returns whether --nproc-per-node gives a number for each object of a host, as in "2:socket".
bool IsPerObject(const Options& options) { return absl::StrContains(options.nproc_word, ':'); }

absl::Status TakeTotal(const TypedLine& line, Options& options) {
  const TypedNumber& number = *line.number;
  if (options.hosts.any()) {
    options.hosts.ranks = number.value;
    options.hosts.ranks_word = number.word;
    if (line.says_workers && IsPerObject(options)) {
      options.hosts.ranks_of_object = options.nproc_word;
    } else if (line.says_workers) {
      if (!options.nproc.has_value()) {
        return InvalidArgumentError(absl::StrCat(Shown(number), " with --nproc-per-node ",
                                                 options.nproc_word, ": expected a number"));
      }
      options.hosts.ranks_of_each = *options.nproc;
    }
    if (const int needed = RanksOf(options.others); needed > number.value) {
      return InvalidArgumentError(absl::StrCat("the programs of --also need ", needed,
                                               " ranks, and ", number.word, " says ",
                                               number.value));
    }
  } else if (options.policy.max_nodes > 1) {
    return InvalidArgumentError(absl::StrCat(
        number.word,
        " is the number of all ranks, and each node of those that are started by hand would have "
        "to know its part: write --nproc-per-node ",
        ShareOf(number, options.policy), ", the workers of each node, or --hosts A,B"));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsNumberWord(string_view word) { return FindNumberWord(word) != nullptr; }

absl::StatusOr<TypedLine> ReadTypedLine(const std::vector<std::string>& words) {
  TypedLine line;
  size_t i = 0;
  for (; i < words.size() && words[i].size() > 1 && words[i][0] == '-'; ++i) {
    const auto [word, value] = WordAndValue(words[i]);
    if (const NumberWord* const row = FindNumberWord(word)) {
      if (!value && i + 1 == words.size()) break;
      HLAUNCH_ASSIGN_OR_RETURN(TypedNumber number,
                               NumberOf(*row, word, value ? *value : words[++i]));
      if (line.number && line.number->word != number.word) {
        return InvalidArgumentError(
            absl::StrCat(Shown(*line.number), " and ", Shown(number), ": leave one of them out"));
      }
      line.number = std::move(number);
      continue;
    }
    const OptionsOfWord found = OptionsOf(words[i]);
    if (found.options.empty()) break;
    for (const auto& [option, typed] : found.options) {
      line.says_workers = line.says_workers || string_view(option->name) == kWorkersOption;
      line.spellings[option->name] = typed;
    }
    line.words.push_back(WithOneSpelling(words[i]));
    if (found.needs_value && i + 1 < words.size()) line.words.push_back(words[++i]);
  }
  line.words.insert(line.words.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  if (line.number && !line.says_workers) {
    const std::string in_its_place = absl::StrCat(kWorkersOption, "=", line.number->value);
    line.words.insert(line.words.begin(), in_its_place);
    line.spellings[kWorkersOption] = line.number->word;
  }
  return line;
}

absl::Status TakeNumber(const TypedLine& line, Options& options) {
  if (!line.number) return absl::OkStatus();
  const TypedNumber& number = *line.number;
  const bool several = options.hosts.any() || options.policy.max_nodes > 1;
  if (number.counts == NumberCounts::kUnclear && several) {
    return InvalidArgumentError(absl::StrCat(
        Shown(number),
        " may mean each node's GPUs or those of all nodes: write --nproc-per-node N, the workers "
        "of each node"));
  }
  const bool is_total = number.counts == NumberCounts::kAllRanks;
  if (is_total && several) return TakeTotal(line, options);
  if (is_total && line.says_workers && IsPerObject(options)) {
    options.nproc_share = number.value;
    return absl::OkStatus();
  }
  // As on several hosts, --nproc-per-node is the most that this host may have.
  const bool fits = is_total && options.nproc.has_value() && number.value <= *options.nproc;
  if (line.says_workers && fits) options.nproc = number.value;
  if (line.says_workers && options.nproc != number.value) {
    return InvalidArgumentError(
        absl::StrCat(Shown(number), " and --nproc-per-node ",
                     options.nproc ? absl::StrCat(*options.nproc) : options.nproc_word,
                     is_total && options.nproc ? " (-N), the most ranks of this host" : "",
                     ": leave one of them out", is_total ? ", or name more with --hosts" : ""));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
