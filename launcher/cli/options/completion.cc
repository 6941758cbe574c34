// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/completion.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/option_table.h"

namespace hlaunch {
namespace {

using absl::string_view;

// Returns the literal words of a value in --help: auto and cpu of "N|auto|cpu".
std::vector<std::string> Choices(const OptionRow& row) {
  std::vector<std::string> words;
  for (const string_view word : absl::StrSplit(row.value, '|')) {
    if (!word.empty() && absl::ascii_islower(word[0])) words.emplace_back(word);
  }
  return words;
}

// Returns the arguments of compgen that complete an option's value in bash; empty if nothing does.
std::string BashAction(const OptionRow& row) {
  const auto choices = Choices(row);
  if (!choices.empty()) return absl::StrCat("-W '", absl::StrJoin(choices, " "), "'");
  if (row.value == string_view("FILE")) return "-f";
  if (row.value == string_view("DIR")) return "-d";
  if (absl::StartsWith(row.value, "HOST")) return "-A hostname";
  return "";
}

// Escapes `text` for single quotes in zsh, where some characters have a meaning of their own.
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

// A shell filter that prints the long options of a command's --help.
constexpr char kOptionsOfHelp[] = R"(sed -n 's/^  *\(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p')";

// Returns the commands to complete for `program`. Under the name torchrun none is completed.
std::vector<const CommandRow*> Commands(const std::string& program) {
  std::vector<const CommandRow*> rows;
  for (const CommandRow& row : CommandTable()) {
    if (!row.hidden() && program == "hlaunch") rows.push_back(&row);
  }
  return rows;
}

std::string WordsOfCommands(const std::string& program, absl::string_view between) {
  return absl::StrJoin(Commands(program), between, [](std::string* out, const CommandRow* row) {
    absl::StrAppend(out, row->word);
  });
}

// Returns the words that may follow a command whose usage is such as "init|join"; else empty.
std::string WordsBehind(const CommandRow& row) {
  const string_view usage = row.usage;
  const bool is_choice = absl::StrContains(usage, '|') && absl::ascii_islower(usage[0]);
  return is_choice ? absl::StrReplaceAll(usage, {{"|", " "}}) : "";
}

// Returns a line of a shell's `case` for each command that has such words. WORDS in `line` stands
// for them.
std::string CasesOfWords(const std::string& program, absl::string_view line) {
  std::string cases;
  for (const CommandRow* row : Commands(program)) {
    const std::string words = WordsBehind(*row);
    if (words.empty()) continue;
    absl::StrAppend(&cases, row->word, ") ", absl::StrReplaceAll(line, {{"WORDS", words}}),
                    " ;;\n");
  }
  return cases;
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
  # A command has options of its own, and says them.
  if ((COMP_CWORD > 1)) && [[ ' COMMANDS ' == *" ${COMP_WORDS[1]} "* ]]; then
    if [[ ${COMP_WORDS[1]} == help ]]; then
      mapfile -t COMPREPLY < <(compgen -W 'COMMANDS' -- "$current")
    elif [[ $current == -* ]]; then
      word=$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2> /dev/null | OPTIONS_OF_HELP)
      mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
    elif ((COMP_CWORD == 2)); then
      case ${COMP_WORDS[1]} in
        CASES_OF_WORDS        *) ;;
      esac
    fi
    return 0
  fi
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
  elif ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W 'COMMANDS' -- "$current"; compgen -f -- "$current")
  fi
  return 0
}
complete -o default -o filenames -F _PROGRAM PROGRAM
)",
      {{"PROGRAM", program},
       {"NAMES_WITH_VALUE", absl::StrJoin(with_value, " | ")},
       {"ACTIONS", actions},
       {"UNDERSCORED", absl::StrJoin(underscored, " ")},
       {"NAMES", absl::StrJoin(names, " ")},
       {"OPTIONS_OF_HELP", kOptionsOfHelp},
       {"CASES_OF_WORDS",
        CasesOfWords(program, "mapfile -t COMPREPLY < <(compgen -W 'WORDS' -- \"$current\")")},
       {"COMMANDS", WordsOfCommands(program, " ")}});
}

std::string ZshCompletion(const std::string& program) {
  std::string options, commands;
  for (const OptionRow& row : OptionTable()) absl::StrAppend(&options, ZshRow(row));
  for (const CommandRow* row : Commands(program)) {
    absl::StrAppend(&commands, "    '", row->word, ":", ZshText(row->summary), "'\n");
  }
  return absl::StrReplaceAll(
      R"zsh(#compdef PROGRAM
# zsh completion of PROGRAM
_PROGRAM_first() {
  local -a commands=(
COMMAND_ROWS  )
  ((CURRENT == 2)) && _describe command commands
  _files
}
_PROGRAM() {
  # A command has options of its own, and says them.
  if ((CURRENT > 2)) && [[ $words[2] == (COMMANDS) ]]; then
    if [[ $words[2] == help ]]; then
      compadd -- ${(s:|:):-'COMMANDS'}
    else
      ((CURRENT == 3)) && case $words[2] in
        CASES_OF_WORDS      esac
      compadd -- ${(f)"$($words[1] $words[2] --help 2> /dev/null | OPTIONS_OF_HELP)"}
    fi
    return
  fi
  _arguments -S \
OPTION_ROWS    '1:script:_PROGRAM_first' \
    '*::argument:_files'
}
_PROGRAM "$@"
)zsh",
      {{"PROGRAM", program},
       {"OPTIONS_OF_HELP", kOptionsOfHelp},
       {"CASES_OF_WORDS", CasesOfWords(program, "compadd -- WORDS")},
       {"COMMANDS", program == "hlaunch" ? WordsOfCommands(program, "|") : "-"},
       {"COMMAND_ROWS", commands},
       {"OPTION_ROWS", options}});
}

}  // namespace hlaunch
