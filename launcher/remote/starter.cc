// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/starter.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr char kSshArgs[] = "HLAUNCH_SSH_ARGS";

}  // namespace

std::string Starter::Name() const {
  if (agent.empty()) return "ssh";
  return agent[0].substr(agent[0].rfind('/') + 1);
}

absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  for (const char c : text) {
    if (quote == '\0' && absl::ascii_isspace(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      words.back().push_back(c);
    }
  }
  if (quote == '\0') return words;
  return absl::InvalidArgumentError(absl::StrCat("a quote (", std::string(1, quote), ") is open"));
}

absl::StatusOr<Starter> FindStarter(const HostWish& wish, const Environment& environment) {
  Starter starter;
  const auto agent = SplitWords(wish.launch_agent);
  if (!agent.ok() || (agent->empty() && !wish.launch_agent.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--launch-agent: ", agent.ok() ? "no command" : agent.status().message()));
  }
  starter.agent = *agent;
  const auto words = SplitWords(environment.Get(kSshArgs));
  if (!words.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(kSshArgs, ": ", words.status().message()));
  }
  starter.ssh_words = *words;
  return starter;
}

std::vector<std::string> StartCommand(const Starter& starter, const TargetHost& host, bool here,
                                      const std::string& program) {
  std::vector<std::string> words;
  if (!starter.agent.empty()) {
    for (const std::string& word : starter.agent) {
      words.push_back(absl::StrReplaceAll(word, {{"%h", host.Login()}}));
    }
  } else if (!here) {
    words = {"ssh",
             "-T",
             "-a",
             "-x",
             "-oBatchMode=yes",
             "-oClearAllForwardings=yes",
             "-oConnectTimeout=10",
             "-oServerAliveInterval=15",
             "-oServerAliveCountMax=3",
             "-oLogLevel=ERROR"};
    if (!host.user.empty()) words.insert(words.end(), {"-l", host.user});
    words.insert(words.end(), starter.ssh_words.begin(), starter.ssh_words.end());
    words.insert(words.end(), {"--", host.name});
  }
  words.insert(words.end(), {program, "agent", "--stdin"});
  return words;
}

}  // namespace hlaunch
