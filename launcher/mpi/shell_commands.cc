// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/mpi/shell_commands.h"

#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kEndsCommand = "\n;&|(){}`";

}  // namespace

std::vector<std::vector<std::string>> CommandsIn(absl::string_view text, size_t most) {
  const std::string joined = absl::StrReplaceAll(text, {{"\\\n", " "}, {"\r", ""}});
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> words;
  std::string word;
  char quote = 0;
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
    if (quote != 0) {
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

}  // namespace hlaunch
