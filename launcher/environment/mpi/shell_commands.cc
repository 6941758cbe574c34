// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/shell_commands.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/environment/mpi/text_of_file.h"

namespace hlaunch {
namespace {

constexpr int kMostNested = 6;  // $(...) in another.
constexpr absl::string_view kEndsCommand = "\n;&|()`";

std::string WithSlash(const std::string& folder) {
  return folder.empty() || folder.back() == '/' ? folder : absl::StrCat(folder, "/");
}

std::string Below(const std::string& folder, const std::string& path) {
  return absl::StartsWith(path, "/") ? path : absl::StrCat(folder, path);
}

// What a $(...) with this text prints.
std::string Output(absl::string_view text, const ShellScope& scope) {
  ShellScope inner = scope;
  std::string said;
  for (const std::vector<std::string>& command : CommandsIn(text, 4)) {
    const std::string last = Expand(command.back(), inner);
    if (command[0] == "dirname") said = last.substr(0, FolderOf(last).size() - 1);
    if (command[0] == "realpath" || command[0] == "readlink") said = last;
    if (command[0] == "pwd") said = inner.folder.empty() ? "." : inner.folder;
    Follow(command, inner);
  }
  return said;
}

std::string ValueOf(const std::string& name, const ShellScope& scope) {
  if (name == "0" || name == "BASH_SOURCE") return scope.script;
  if (name == "PWD" && !scope.folder.empty()) return scope.folder;
  const auto found = scope.variables.find(name);
  if (found != scope.variables.end()) return found->second;
  return scope.environment == nullptr ? "" : scope.environment->Get(name);
}

size_t NameLength(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(text[length])) || text[length] == '_')) {
    ++length;
  }
  return length;
}

// The length of what begins with '(' or '{' at the start of `text`, with its end.
size_t BracketLength(absl::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '{') ++depth;
    if ((text[i] == ')' || text[i] == '}') && --depth == 0) return i + 1;
  }
  return text.size();
}

}  // namespace

std::vector<std::vector<std::string>> CommandsIn(absl::string_view text, size_t most) {
  const std::string joined = absl::StrReplaceAll(text, {{"\\\n", " "}, {"\r", ""}});
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
  int depth = 0;  // Of parentheses in a $(...).
  bool comment = false;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, ""));
  };
  const auto end_command = [&] {
    end_word();
    if (!words.empty()) commands.push_back(std::exchange(words, {}));
  };
  for (const char c : joined) {
    if (commands.size() >= most) return commands;
    comment = comment && c != '\n';
    if (comment) continue;
    if (depth > 0 || (c == '(' && quote != '\'' && absl::EndsWith(word, "$"))) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c != '"' && c != '\'') word.push_back(c);
    } else if (quote != 0) {
      if (c != quote) word.push_back(c);
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && word.empty()) {
      comment = true;
    } else if (absl::StrContains(kEndsCommand, c)) {
      end_command();
    } else if (absl::ascii_isspace(static_cast<unsigned char>(c)) || c == '<' || c == '>') {
      end_word();
    } else {
      word.push_back(c);
    }
  }
  end_command();
  return commands;
}

std::string Expand(absl::string_view word, const ShellScope& scope) {
  if (std::count(word.begin(), word.end(), '(') > kMostNested) return "";
  std::string out;
  while (!word.empty()) {
    const size_t dollar = word.find('$');
    absl::StrAppend(&out, word.substr(0, dollar));
    if (dollar == word.npos) break;
    word.remove_prefix(dollar + 1);
    const bool command = absl::StartsWith(word, "("), braced = absl::StartsWith(word, "{");
    const size_t length = command || braced ? BracketLength(word) : NameLength(word);
    absl::string_view inner = word.substr(0, length);
    if (command || braced) inner = inner.substr(1, length < 2 ? 0 : length - 2);
    if (command) absl::StrAppend(&out, Output(inner, scope));
    if (!command) {
      absl::StrAppend(&out, ValueOf(std::string(inner.substr(0, NameLength(inner))), scope));
    }
    word.remove_prefix(length);
  }
  return out;
}

void Follow(const std::vector<std::string>& command, ShellScope& scope) {
  if (command[0] == "cd" && command.size() == 2) {
    scope.folder = WithSlash(Below(scope.folder, Expand(command[1], scope)));
  }
  const size_t first = command[0] == "export" ? 1 : 0;
  for (size_t i = first; i < command.size(); ++i) {
    const size_t equals = NameLength(command[i]);
    if (equals == 0 || equals == command[i].size() || command[i][equals] != '=') break;
    scope.variables[command[i].substr(0, equals)] = Expand(command[i].substr(equals + 1), scope);
  }
}

}  // namespace hlaunch
