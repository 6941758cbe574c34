// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/read_words.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/cli/values/seconds.h"
#include "launcher/text/printable.h"
#include "launcher/text/shell_words.h"
#include "launcher/text/spelling.h"
#include "proto/base/status_macros.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

// Returns all spellings of an option in the form that CLI11 wants.
std::string Spellings(const OptionRow& row) {
  std::string names = row.name;
  const std::string underscored = Underscored(row.name);
  if (underscored != names) absl::StrAppend(&names, ",", underscored);
  if (row.short_name[0] != '\0') absl::StrAppend(&names, ",", row.short_name);
  return names;
}

// Returns whether one of `words` can name the option: by a long name, or by a letter of a word such
// as -vq. `long_names` are the words that begin with two dashes, in the spelling of the table.
bool MayBeNamed(const OptionRow& row, const absl::flat_hash_set<std::string>& long_names,
                string_view letters) {
  if (row.short_name[0] != '\0' && absl::StrContains(letters, row.short_name[1])) return true;
  return long_names.contains(row.name);
}

// Returns the rows that `words` can name. CLI11 compares every option that it is told of with all
// others, which takes a millisecond for all of hlaunch's.
std::vector<const OptionRow*> RowsNamedBy(absl::Span<const std::string> words,
                                          absl::Span<const OptionRow> table) {
  absl::flat_hash_set<std::string> long_names;
  std::string letters;
  for (const std::string& word : words) {
    if (absl::StartsWith(word, "--")) {
      std::string name = word.substr(0, word.find('='));
      std::replace(name.begin(), name.end(), '_', '-');
      long_names.insert(std::move(name));
    } else if (absl::StartsWith(word, "-")) {
      letters += word;
    }
  }
  std::vector<const OptionRow*> rows;
  for (const OptionRow& row : table) {
    if (MayBeNamed(row, long_names, letters)) rows.push_back(&row);
  }
  return rows;
}

const TypedOption* Find(const std::vector<TypedOption>& given, string_view name) {
  const auto found = std::find_if(given.begin(), given.end(), [name](const TypedOption& option) {
    return option.row->name == name;
  });
  return found == given.end() ? nullptr : &*found;
}

// The only place that uses CLI11. CLI11 throws exceptions, which end here.
absl::StatusOr<TypedWords> Divide(string_view name, absl::Span<const OptionRow> table,
                                  const std::vector<std::string>& words, OptionPlace place) {
  CLI::App app;
  app.set_help_flag();
  if (place == OptionPlace::kBeforeScript) {
    app.prefix_command();
  } else {
    app.allow_extras();
  }
  const std::vector<const OptionRow*> rows = RowsNamedBy(words, table);
  std::vector<CLI::Option*> options;
  for (const OptionRow* row : rows) {
    CLI::Option* option =
        row->takes_value() ? app.add_option(Spellings(*row)) : app.add_flag(Spellings(*row));
    if (row->takes_value()) option->expected(1)->type_size(1);
    options.push_back(option->multi_option_policy(row->repeats ? CLI::MultiOptionPolicy::TakeAll
                                                               : CLI::MultiOptionPolicy::TakeLast));
  }
  TypedWords typed;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    typed.rest = app.remaining();
    for (size_t i = 0; i < options.size(); ++i) {
      const std::vector<std::string>& results = options[i]->results();
      const size_t first = rows[i]->repeats || results.empty() ? 0 : results.size() - 1;
      for (size_t n = first; n < results.size(); ++n) {
        typed.given.push_back({rows[i], results[n]});
      }
    }
  } catch (const CLI::ArgumentMismatch&) {
    return InvalidArgumentError(
        absl::StrCat(PrintableLine(words.back()), " needs a value; see ", name, " --help"));
  } catch (const CLI::Error& error) {
    return InvalidArgumentError(absl::StrCat("wrong option: ", PrintableLine(error.what())));
  }
  return typed;
}

// Refuses empty values such as `--rdzv-id=`: CLI11 drops the empty value and takes the next word.
absl::Status CheckValues(string_view name, absl::Span<const std::string> words) {
  for (const std::string& word : words) {
    if (!absl::StartsWith(word, "--") || !absl::EndsWith(word, "=")) continue;
    return InvalidArgumentError(
        absl::StrCat(PrintableLine(word), " has no value; see ", name, " --help"));
  }
  return absl::OkStatus();
}

}  // namespace

bool TypedWords::Has(string_view name) const { return Find(given, name) != nullptr; }

std::string TypedWords::Get(string_view name, string_view otherwise) const {
  const TypedOption* found = Find(given, name);
  return found == nullptr ? std::string(otherwise) : found->value;
}

absl::Status TypedWords::ReadSeconds(string_view name, int min, int max, int* out) const {
  const std::string text = Get(name, "");
  if (!Has(name) || ReadWholeSeconds(text, min, max, out)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " '", PrintableLine(text), "': expected a number of seconds from ", min, " to ", max));
}

absl::Status TypedWords::ReadRanks(string_view name, std::vector<Rank>* out) const {
  if (!Has(name)) return absl::OkStatus();
  const std::string text = Get(name, "");
  std::vector<Rank> ranks;
  if (text.find_first_not_of("0123456789,-") == text.npos) ranks = ParseRankList(text);
  if (ranks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " '", PrintableLine(text), "': expected ranks as in 0-3,7"));
  }
  std::sort(ranks.begin(), ranks.end());
  *out = std::move(ranks);
  return absl::OkStatus();
}

absl::StatusOr<TypedWords> ReadWords(string_view name, absl::Span<const OptionRow> table,
                                     const std::vector<std::string>& words, OptionPlace place) {
  if (place == OptionPlace::kAnywhere) {
    HLAUNCH_RETURN_IF_ERROR(CheckValues(name, words));
  }
  HLAUNCH_ASSIGN_OR_RETURN(TypedWords typed, Divide(name, table, words, place));
  if (place == OptionPlace::kBeforeScript) {
    const size_t taken = words.size() - typed.rest.size();
    HLAUNCH_RETURN_IF_ERROR(CheckValues(name, absl::MakeConstSpan(words).first(taken)));
    return typed;
  }
  for (const std::string& word : typed.rest) {
    if (word.empty()) {
      return InvalidArgumentError(absl::StrCat(
          name, " got an empty word, as of a variable that is not set; see ", name, " --help"));
    }
    HLAUNCH_RETURN_IF_ERROR(CheckDashes(word));
    if (absl::StartsWith(word, "-")) {
      return UnknownWord(table, word, absl::StrCat("see ", name, " --help"));
    }
  }
  return typed;
}

absl::Status UnknownWord(absl::Span<const OptionRow> table, string_view word, string_view where) {
  const std::string typed = PrintableLine(word.substr(0, word.find('=')));
  std::vector<std::string> known;
  for (const OptionRow& row : table) known.push_back(row.name);
  const std::string near = NearestSpelling(absl::StrReplaceAll(typed, {{"_", "-"}}), known);
  return InvalidArgumentError(
      absl::StrCat("unknown option ", ShellQuote(typed), "; ",
                   near.empty() ? std::string(where) : absl::StrCat("did you mean ", near, "?")));
}

}  // namespace hlaunch
