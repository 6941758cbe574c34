// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/take_words.h"

#include <algorithm>
#include <climits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using Values = absl::Span<const std::string>;

// The format of Open MPI 4; version 5 appends a blank.
constexpr char kTags[] = "[1,${rank}]<${stream}>:";
absl::Status Add(MpirunLine& line, const char* option, string_view value) {
  line.words.push_back(absl::StrCat(option, "=", value));
  return absl::OkStatus();
}

// Whether it is a variable without its value.
bool IsBareName(string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool IsSet(const std::string& name, const Environment& environment) {
  const std::vector<std::string> all = environment.Without("");
  return std::any_of(all.begin(), all.end(), [&name](string_view entry) {
    return entry.substr(0, entry.find('=')) == name;
  });
}

absl::Status SetNumber(const std::string& text, std::string* number) {
  int n = 0;
  if (ParseInt(text, 1, INT_MAX, &n)) {
    *number = text;
    return absl::OkStatus();
  }
  std::string message = "expected a number from 1 on";
  // An error shows the value without these. A file of Windows leaves "2\r".
  constexpr size_t kShown = 40;
  const std::string shown = text.substr(0, kShown);
  if (std::any_of(shown.begin(), shown.end(),
                  [](char c) { return absl::ascii_isspace(c) || absl::ascii_iscntrl(c); })) {
    absl::StrAppend(&message, ", and \"", absl::CEscape(shown),
                    "\" has a blank or a control character");
  }
  return InvalidArgumentError(message);
}

}  // namespace

absl::Status TakeRanks(Values values, MpirunLine& line) {
  return SetNumber(values[0], &line.ranks);
}

absl::Status TakePerNode(Values values, MpirunLine& line) {
  line.goes_round = false;
  return SetNumber(values[0], &line.per_node);
}

absl::Status TakePerRound(Values values, MpirunLine& line) {
  HLAUNCH_RETURN_IF_ERROR(TakePerNode(values, line));
  line.goes_round = true;
  return absl::OkStatus();
}

absl::Status TakeHosts(Values values, MpirunLine& line) {
  absl::StrAppend(&line.hosts, line.hosts.empty() ? "" : ",", values[0]);
  return absl::OkStatus();
}

absl::Status TakeHostfile(Values values, MpirunLine& line) {
  line.hostfile = values[0];
  return absl::OkStatus();
}

absl::Status TakeReportBindings(Values, MpirunLine& line) {
  line.tells = true;
  line.words.emplace_back("--report-bindings");
  return absl::OkStatus();
}

absl::Status TakeVerbose(Values, MpirunLine& line) {
  if (!line.verbose) line.words.emplace_back("--verbose");
  line.verbose = true;
  return absl::OkStatus();
}

absl::Status TakeDisplay(Values values, MpirunLine& line) {
  const std::vector<string_view> words = absl::StrSplit(values[0], ',', absl::SkipEmpty());
  for (const string_view word : words) {
    const string_view what = word.substr(0, word.find(':'));
    if (what == "bindings" || what == "bind") {
      HLAUNCH_RETURN_IF_ERROR(TakeReportBindings(values, line));
    } else if (what == "map" || what == "map-devel" || what == "allocation" || what == "alloc") {
      HLAUNCH_RETURN_IF_ERROR(TakeVerbose(values, line));
    } else {
      return InvalidArgumentError("expected map, allocation or bindings");
    }
  }
  return absl::OkStatus();
}

// The value of -genv is a word of its own, or it follows '='.
absl::Status TakeVariable(Values values, MpirunLine& line) {
  line.words.insert(line.words.end(), {"-x", values[0]});
  return absl::OkStatus();
}

absl::Status TakeOwnVariable(Values values, MpirunLine& line) {
  line.own_variables.push_back(values[0]);
  return TakeVariable(values, line);
}

absl::Status TakeExport(string_view what, MpirunLine& line) { return Add(line, "--export", what); }

absl::Status TakeTags(Values, MpirunLine& line) {
  line.prefix = kTags;
  return absl::OkStatus();
}

absl::Status TakeRankTags(Values, MpirunLine& line) {
  line.prefix = "[${rank}] ";
  return absl::OkStatus();
}

absl::Status TakePattern(Values values, MpirunLine& line) {
  const std::string pattern = absl::StrReplaceAll(values[0], {{"$", "$$"},
                                                              {"%%", "%"},
                                                              {"%r", "${rank}"},
                                                              {"%h", "\1"},
                                                              {"%p", "\1"},
                                                              {"%g", "\1"},
                                                              {"%t", "\1"}});
  if (absl::StrContains(pattern, "\1") || pattern.empty()) {
    return InvalidArgumentError("expected text with %r, the rank");
  }
  line.prefix = pattern;
  return absl::OkStatus();
}

absl::Status TakeOutput(Values values, MpirunLine& line) {
  const std::vector<string_view> words = absl::StrSplit(values[0], ',', absl::SkipEmpty());
  for (const string_view word : words) {
    if (word == "tag" || word == "tag-detailed" || word == "tag-fullname") {
      line.prefix = kTags;
    } else if (word == "rank") {
      line.prefix = "[${rank}] ";
    } else if (word == "timestamp") {
      line.words.emplace_back("--timestamp-output");
    } else if (word == "merge" || word == "merge-stderr-to-stdout") {
      line.words.emplace_back("--merge-stderr");
    } else if (absl::StartsWith(word, "dir=")) {
      const std::string directory(word.substr(4));
      HLAUNCH_RETURN_IF_ERROR(TakeOutputFilename(absl::MakeConstSpan(&directory, 1), line));
    } else {
      return InvalidArgumentError("expected tag, timestamp, merge or dir=DIR");
    }
  }
  return absl::OkStatus();
}

absl::Status TakeOutputFilename(Values values, MpirunLine& line) {
  string_view directory = values[0];
  const bool only_there = absl::ConsumeSuffix(&directory, ":nocopy");
  absl::ConsumeSuffix(&directory, ":copy");
  if (directory.empty() || absl::StrContains(directory, ":")) {
    return InvalidArgumentError("expected DIR or DIR:nocopy");
  }
  HLAUNCH_RETURN_IF_ERROR(Add(line, "--log-dir", directory));
  return Add(line, only_there ? "--redirects" : "--tee", "3");
}

absl::Status TakeStdin(Values values, MpirunLine& line) {
  if (values[0] != "0" && values[0] != "none" && values[0] != "all") {
    return InvalidArgumentError("expected 0, all or none");
  }
  line.reads_stdin = false;  // The word itself decides.
  return Add(line, "--stdin", values[0]);
}

absl::Status TakeLaunchAgent(Values values, MpirunLine& line) {
  line.shell = values[0];
  return absl::OkStatus();
}

absl::Status TakeShellArguments(Values values, MpirunLine& line) {
  line.shell_arguments = values[0];
  return absl::OkStatus();
}

absl::Status TakeLauncher(Values values, MpirunLine&) {
  if (values[0] == "ssh" || values[0] == "fork") return absl::OkStatus();
  return InvalidArgumentError(
      "hosts are reached by ssh; for another way write --launch-agent 'CMD %h'");
}

absl::Status ChangesNothing(string_view what, MpirunLine& line) {
  line.remarks.push_back(
      absl::StrCat(PrintableLine(what), " is for a part of mpirun that is not here: ignored"));
  return absl::OkStatus();
}

bool Says(const MpirunLine& line, string_view option) {
  return std::any_of(line.words.begin(), line.words.end(), [option](string_view word) {
    return word.substr(0, word.find('=')) == option;
  });
}

void LeaveOutUnset(const Environment& environment, MpirunLine& line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.words.size(); ++i) {
    const bool variable = line.words[i] == "-x" && i + 1 < line.words.size();
    words.push_back(line.words[i]);
    if (!variable) continue;
    const std::string& named = line.words[++i];
    words.push_back(named);
    if (!IsBareName(named) || IsSet(named, environment)) continue;
    words.resize(words.size() - 2);
    std::vector<std::string>& own = line.own_variables;
    own.erase(std::remove(own.begin(), own.end(), named), own.end());
    line.remarks.push_back(absl::StrCat("-x ", named, ": it is not set here, so no rank gets it"));
  }
  line.words = std::move(words);
}

absl::Status TakePrefix(Values, MpirunLine& line) { return ChangesNothing("--prefix", line); }

}  // namespace hlaunch
