// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/python_call.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kWithValue = "WX";  // Python's options that the next word belongs to.
constexpr absl::string_view kHarmless = "bBdOPqRsuWX";

PythonCall No(std::string why) {
  PythonCall call;
  call.why_not = std::move(why);
  return call;
}

// python, python3, python3.11, python3.13t, pypy is another.
bool IsPython(absl::string_view path) {
  absl::string_view name = path.substr(path.rfind('/') + 1);
  return absl::ConsumePrefix(&name, "python") && std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isdigit(c) || c == '.' || c == 't';
         });
}

// What a value of -X changes in a way that a fork would not show.
bool IsUnfit(absl::string_view x) {
  return absl::StartsWith(x, "importtime") || absl::StartsWith(x, "perf");
}

}  // namespace

std::string KindOf(const PythonCall& call) {
  switch (call.kind) {
    case PythonCall::Kind::kScript:
      return "script";
    case PythonCall::Kind::kModule:
      return "module";
    case PythonCall::Kind::kCode:
      break;
  }
  return "code";
}

PythonCall ReadPythonCall(const std::vector<std::string>& argv) {
  if (argv.empty() || !IsPython(argv[0])) return No("the ranks' program is not Python itself");
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (word == "-") return No("the script is read from standard input");
    if (word.empty() || word[0] != '-') return {PythonCall::Kind::kScript, word, ""};
    for (size_t at = 1; at < word.size(); ++at) {
      const char c = word[at];
      const bool takes = absl::StrContains(kWithValue, c) || c == 'm' || c == 'c';
      const std::string value = !takes                 ? ""
                                : at + 1 < word.size() ? word.substr(at + 1)
                                : i + 1 < argv.size()  ? argv[++i]
                                                       : "";
      if (c == 'm') return {PythonCall::Kind::kModule, value, ""};
      if (c == 'c') return {PythonCall::Kind::kCode, value, ""};
      if (!absl::StrContains(kHarmless, c)) return No(absl::StrCat("Python is given ", word));
      if (c == 'X' && IsUnfit(value)) return No(absl::StrCat("Python is given -X ", value));
      if (takes) break;
    }
  }
  return No("Python is given no script");
}

}  // namespace hlaunch
