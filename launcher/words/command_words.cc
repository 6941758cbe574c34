// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/words/command_words.h"

#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "launcher/words/printable.h"
#include "launcher/words/spelling.h"

namespace hlaunch {
namespace {

absl::Status Unknown(absl::string_view command, absl::Span<const WordRow> table,
                     const std::string& word) {
  const std::string typed = PrintableLine(word.substr(0, word.find('=')));
  std::vector<std::string> known;
  for (const WordRow& row : table) known.push_back(row.name);
  const std::string near = NearestSpelling(absl::StrReplaceAll(typed, {{"_", "-"}}), known);
  return absl::InvalidArgumentError(absl::StrCat("unknown option ", typed,
                                                 near.empty()
                                                     ? absl::StrCat("; see ", command, " --help")
                                                     : absl::StrCat("; did you mean ", near, "?")));
}

std::string Names(const WordRow& row) {
  std::string names = row.name;
  const std::string other =
      absl::StrCat("--", absl::StrReplaceAll(absl::string_view(row.name).substr(2), {{"-", "_"}}));
  if (other != names) absl::StrAppend(&names, ",", other);
  if (row.short_name[0] != '\0') absl::StrAppend(&names, ",", row.short_name);
  return names;
}

}  // namespace

std::string CommandWords::Get(const std::string& name, const std::string& otherwise) const {
  const auto it = given.find(name);
  return it == given.end() ? otherwise : it->second;
}

absl::StatusOr<CommandWords> ReadWords(absl::string_view command, absl::Span<const WordRow> table,
                                       const std::vector<std::string>& words) {
  for (const std::string& word : words) {  // CLI11 would take the next word for the value.
    if (absl::StartsWith(word, "--") && absl::EndsWith(word, "=")) {
      return absl::InvalidArgumentError(
          absl::StrCat(PrintableLine(word), " has no value; see ", command, " --help"));
    }
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> options;
  for (const WordRow& row : table) {
    const bool flag = row.value[0] == '\0';
    CLI::Option* option = flag ? app.add_flag(Names(row)) : app.add_option(Names(row));
    if (!flag) option->expected(1)->type_size(1);
    options.push_back(option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast));
  }
  CommandWords read;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    for (size_t i = 0; i < options.size(); ++i) {
      if (options[i]->count() > 0) read.given[table[i].name] = options[i]->results().back();
    }
    read.rest = app.remaining();
  } catch (const CLI::ArgumentMismatch&) {
    return absl::InvalidArgumentError(
        absl::StrCat(PrintableLine(words.back()), " needs a value; see ", command, " --help"));
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat("wrong option: ", error.what()));
  }
  for (const std::string& word : read.rest) {
    if (absl::StartsWith(word, "-")) return Unknown(command, table, word);
  }
  return read;
}

std::string DescribeWords(absl::Span<const WordRow> table) {
  std::string text;
  for (const WordRow& row : table) {
    const std::string names = absl::StrCat(row.short_name[0] != '\0' ? row.short_name : "  ",
                                           row.short_name[0] != '\0' ? ", " : "  ", row.name,
                                           row.value[0] != '\0' ? " " : "", row.value);
    absl::StrAppendFormat(&text, "  %-32s %s\n", names, row.help);
  }
  return text;
}

}  // namespace hlaunch
