// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/read_line.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/cli/mpirun/mpirun_words.h"
#include "launcher/cli/options/number_words.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/text/printable.h"
#include "launcher/text/spelling.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using Words = absl::Span<const std::string>;

bool IsHelp(string_view word) {
  return word == "-h" || word == "--help" || word == "-help" || word == "-?";
}

absl::Status Unknown(const std::string& typed) {
  HLAUNCH_RETURN_IF_ERROR(CheckDashes(typed));
  std::vector<std::string> known;
  for (const MpirunWord& word : MpirunWords()) {
    for (const string_view name : absl::StrSplit(word.names, ", ")) known.emplace_back(name);
  }
  for (const OptionRow& row : OptionTable()) known.emplace_back(row.name);
  const std::string word = PrintableLine(typed.substr(0, typed.find('=')));
  const std::string near = NearestSpelling(word, known);
  return InvalidArgumentError(
      absl::StrCat("unknown option ", word, "; ",
                   near.empty() ? "see mpirun --help" : absl::StrCat("did you mean ", near, "?")));
}

// "-n2" or "-np=2".
bool IsGluedNumber(string_view word) {
  if (!absl::ConsumePrefix(&word, "-n")) return false;
  absl::ConsumePrefix(&word, "p");
  absl::ConsumePrefix(&word, "=");
  return !word.empty() && std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
}

// Whether MPICH's mpiexec has this word and Open MPI's mpirun has not.
bool IsHydras(string_view typed) {
  constexpr const char* kHydras[] = {"ppn",
                                     "perhost",
                                     "genv",
                                     "genvlist",
                                     "genvall",
                                     "genvnone",
                                     "env",
                                     "envlist",
                                     "envall",
                                     "f",
                                     "hosts",
                                     "envnone",
                                     "launcher",
                                     "l",
                                     "rmk",
                                     "bootstrap",
                                     "iface",
                                     "configfile",
                                     "bootstrap-exec",
                                     "launcher-exec",
                                     "prepend-rank",
                                     "prepend-pattern",
                                     "print-rank-map"};
  const string_view name = typed.substr(typed.find_first_not_of('-'));
  return std::any_of(std::begin(kHydras), std::end(kHydras),
                     [name](const char* each) { return name == each; });
}

// Goes through the words of one line, up to its program.
class Reader {
 public:
  Reader(Words words, bool by_that_name) : words_(words) { line_.every_word = by_that_name; }

  absl::Status Read();

  ReadLine Result() const { return {line_, next_, wants_help_}; }

 private:
  // Whether the next word is an option to read.
  bool AtOption() const {
    return next_ < words_.size() && words_[next_].size() > 1 && words_[next_][0] == '-' &&
           words_[next_] != "--";
  }

  // Passes on an option of hlaunch's own with its value.
  void PassOn(bool takes_value) {
    const bool apart = takes_value && !absl::StrContains(words_[next_], "=");
    line_.words.push_back(words_[next_++]);
    if (apart && next_ < words_.size()) line_.words.push_back(words_[next_++]);
  }

  absl::StatusOr<std::vector<std::string>> ValuesOf(const MpirunWord& word);
  absl::Status Take(const MpirunWord& word);

  const Words words_;
  MpirunLine line_;
  size_t next_ = 0;
  bool wants_help_ = false;
};

absl::StatusOr<std::vector<std::string>> Reader::ValuesOf(const MpirunWord& word) {
  const std::string& typed = words_[next_];
  const std::string name = typed.substr(0, typed.find('='));
  size_t left = word.num_values();
  std::vector<std::string> values;
  if (const size_t equals = typed.find('='); equals != std::string::npos) {
    if (left != 1) {
      return InvalidArgumentError(absl::StrCat(PrintableLine(typed), ": leave out what follows ="));
    }
    values.push_back(typed.substr(equals + 1));
    left = 0;
  }
  const bool apart = left == 1;
  for (; left > 0 && next_ + 1 < words_.size(); --left) values.push_back(words_[++next_]);
  // As in Hydra's -genv NAME VALUE.
  const bool may_be_apart = absl::EndsWith(name, "env") && !absl::EndsWith(name, "set-env");
  if (may_be_apart && left == 0 && !absl::StrContains(values[0], "=") &&
      next_ + 1 < words_.size()) {
    absl::StrAppend(&values[0], "=", words_[++next_]);
  }
  if (left > 0 || (values.size() == 1 && values[0].empty())) {
    return InvalidArgumentError(absl::StrCat(PrintableLine(name), " needs a value, ", word.value));
  }
  // As in "--prefix --mca btl tcp". The arguments of ssh begin with dashes.
  if (values.size() == 1 && apart && !word.IsNamed("bootstrap-exec-args") &&
      FindMpirunWord(values[0]) != nullptr) {
    return InvalidArgumentError(absl::StrCat(PrintableLine(name), " needs a value, ", word.value,
                                             ", and what follows is another word, ",
                                             PrintableLine(values[0])));
  }
  ++next_;
  return values;
}

absl::Status Reader::Take(const MpirunWord& word) {
  const std::string typed = words_[next_].substr(0, words_[next_].find('='));
  if (word.verdict == MpirunVerdict::kRefused) {
    return InvalidArgumentError(absl::StrCat(PrintableLine(typed), ": ", word.said));
  }
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> values, ValuesOf(word));
  if (word.option != nullptr) {
    line_.words.push_back(values.empty() ? word.option : absl::StrCat(word.option, "=", values[0]));
    return absl::OkStatus();
  }
  if (IsNumberWord(typed)) line_.ranks_word = typed;
  if (IsHydras(typed)) line_.says_hydras_words = true;
  const absl::Status taken = word.take(values, line_);
  if (taken.ok()) return taken;
  const std::string shown = absl::StrJoin(values, " ");
  return InvalidArgumentError(
      absl::StrCat(typed, " '", PrintableLine(shown), "': ", taken.message()));
}

absl::Status Reader::Read() {
  while (AtOption()) {
    const std::string& typed = words_[next_];
    const OptionRow* const own = FindOption(typed);
    const MpirunWord* word = FindMpirunWord(typed);
    if (line_.every_word && IsHelp(typed)) {
      wants_help_ = true;
      return absl::OkStatus();
    }
    if (line_.every_word && typed == "-V") {
      line_.words.emplace_back("--version");
      ++next_;
      continue;
    }
    // Called as hlaunch, hlaunch's own options come first, and its own reader handles -n.
    const bool number = typed == "-n" || typed == "-np";
    const bool glued = IsGluedNumber(typed);
    if (!line_.every_word && word != nullptr && (own != nullptr || word->under_that_name)) {
      word = nullptr;
    }
    if (!line_.every_word && (number || glued)) {
      PassOn(!glued);
    } else if (word != nullptr) {
      HLAUNCH_RETURN_IF_ERROR(Take(*word));
    } else if (own != nullptr) {
      PassOn(own->takes_value());
    } else if (line_.every_word) {
      return Unknown(typed);
    } else {
      return absl::OkStatus();  // hlaunch's own reader reports the error.
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReadLine> ReadMpirunLine(Words words, bool by_that_name) {
  Reader reader(words, by_that_name);
  HLAUNCH_RETURN_IF_ERROR(reader.Read());
  return reader.Result();
}

}  // namespace hlaunch
