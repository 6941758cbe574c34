// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/options/completion.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/options/option_table.h"

namespace hlaunch {
namespace {

using absl::string_view;

// The words among what --help calls a value: "N|auto|cpu" has auto and cpu.
std::vector<std::string> Choices(const OptionRow& row) {
  std::vector<std::string> words;
  for (const string_view word : absl::StrSplit(row.value, '|')) {
    if (!word.empty() && absl::ascii_islower(word[0])) words.emplace_back(word);
  }
  return words;
}

// What completes the value of an option in bash; empty: nothing does.
std::string BashAction(const OptionRow& row) {
  const auto choices = Choices(row);
  if (!choices.empty()) return absl::StrCat("-W '", absl::StrJoin(choices, " "), "'");
  if (row.value == string_view("FILE")) return "-f";
  if (row.value == string_view("DIR")) return "-d";
  if (absl::StartsWith(row.value, "HOST")) return "-A hostname";
  return "";
}

// `text` within single quotes, where zsh takes some signs for its own.
std::string ZshText(string_view text) {
  return absl::StrReplaceAll(
      text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"\\", "\\\\"}});
}

std::string ZshAction(const OptionRow& row) {
  const auto choices = Choices(row);
  if (!choices.empty()) return absl::StrCat("(", absl::StrJoin(choices, " "), ")");
  if (row.value == string_view("FILE")) return "_files";
  if (row.value == string_view("DIR")) return "_files -/";
  if (absl::StartsWith(row.value, "HOST")) return "_hosts";
  return " ";
}

std::string ZshRow(const OptionRow& row) {
  const std::string other = Underscored(row.name) != row.name ? Underscored(row.name) : "";
  std::vector<std::string> names = {row.name};
  if (!other.empty()) names.push_back(other);
  if (row.short_name[0] != '\0') names.emplace_back(row.short_name);
  std::string lines;
  for (const std::string& name : names) {
    // `-` is for `-xVALUE` or a word of its own, `=` for `--x=VALUE` or a word of its own.
    const bool is_long = absl::StartsWith(name, "--");
    const char* joint = !row.takes_value() ? "" : is_long ? "=" : "+";
    const std::string value =
        row.takes_value() ? absl::StrCat(":", ZshText(row.value), ":", ZshAction(row)) : "";
    absl::StrAppend(&lines, "    '(", absl::StrJoin(names, " "), ")", name, joint, "[",
                    ZshText(row.help), "]", value, "' \\\n");
  }
  return lines;
}

}  // namespace

std::string BashCompletion(const std::string& program) {
  std::vector<std::string> names, underscored, with_value;
  std::string actions;
  for (const OptionRow& row : OptionTable()) {
    underscored.push_back(Underscored(row.name));
    for (const string_view name : {string_view(row.name), string_view(row.short_name)}) {
      if (name.empty()) continue;
      names.emplace_back(name);
      if (row.takes_value()) with_value.emplace_back(name);
    }
    const std::string action = row.takes_value() ? BashAction(row) : "";
    if (!action.empty())
      absl::StrAppend(&actions, "      ", row.name, ") list=(", action, ") ;;\n");
  }
  return absl::StrReplaceAll(
      R"(# bash completion of PROGRAM
_PROGRAM() {
  local current=${COMP_WORDS[COMP_CWORD]} option='' word i list=()
  COMPREPLY=()
  # The shell cuts `--option=value` into three words.
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    [[ $word == --* ]] && word=${word//_/-}
    case $word in
      NAMES_WITH_VALUE)
        option=$word
        [[ ${COMP_WORDS[i + 1]} == '=' ]] && ((++i))
        ((++i))
        ((i < COMP_CWORD)) && option=''
        ;;
      -*=* | -?*) [[ ${COMP_WORDS[i + 1]} == '=' ]] && ((i += 2)) ;;
      *) return 0 ;;  # The script: all from here on is its own.
    esac
  done
  [[ $current == '=' ]] && current=''
  if [[ -n $option ]]; then
    case $option in
ACTIONS    esac
    ((${#list[@]})) && mapfile -t COMPREPLY < <(compgen "${list[@]}" -- "$current")
  elif [[ $current == --*_* ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'UNDERSCORED' -- "$current")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W 'NAMES' -- "$current")
  fi
  return 0
}
complete -o default -F _PROGRAM PROGRAM
)",
      {{"PROGRAM", program},
       {"NAMES_WITH_VALUE", absl::StrJoin(with_value, " | ")},
       {"ACTIONS", actions},
       {"UNDERSCORED", absl::StrJoin(underscored, " ")},
       {"NAMES", absl::StrJoin(names, " ")}});
}

std::string ZshCompletion(const std::string& program) {
  std::string text = absl::StrCat("#compdef ", program, "\n# zsh completion of ", program, "\n_",
                                  program, "() {\n  _arguments -S \\\n");
  for (const OptionRow& row : OptionTable()) absl::StrAppend(&text, ZshRow(row));
  return absl::StrCat(text, "    '1:script:_files' \\\n    '*::argument:_files'\n}\n_", program,
                      " \"$@\"\n");
}

}  // namespace hlaunch
