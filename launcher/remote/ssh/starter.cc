// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/starter.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/text/shell_words.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

// Slurm's variables that name the job or tell how to reach Slurm.
constexpr const char* kOfSlurmsJob[] = {"SLURM_JOB",          "SLURM_ARRAY_",       "SLURM_SUBMIT_",
                                        "SLURM_CONF",         "SLURM_CLUSTER_NAME", "SLURM_JWT",
                                        "SLURM_RESTART_COUNT"};

bool ShapesSlurmsStep(absl::string_view entry) {
  return (absl::StartsWith(entry, "SLURM_") || absl::StartsWith(entry, "SRUN_")) &&
         std::none_of(std::begin(kOfSlurmsJob), std::end(kOfSlurmsJob),
                      [entry](const char* prefix) { return absl::StartsWith(entry, prefix); });
}

// These starters join the words to one text, which a shell on the host parses.
constexpr const char* kJoining[] = {"ssh", "rsh", "remsh", "slogin"};
// A shell script that takes a program from stdin, $1 blocks with the checksum $2, and becomes it.
// The script has no quote, backslash, exclamation mark or line end, so every shell leaves it as it
// is inside quotes. The program runs from a descriptor, after its folder, which no other user may
// enter, was removed. The bytes after the program are for the agent: dd leaves them, while
// busybox's head would read into them.
constexpr char kTakeProgram[] =
    "umask 077; d=$(mktemp -d \"${TMPDIR:-/tmp}/hlaunch.XXXXXX\") || exit 126; "
    "dd bs=65536 count=\"$1\" iflag=fullblock status=none > \"$d/hlaunch\"; s=$(sha256sum < "
    "\"$d/hlaunch\"); "
    "if test \"${s%% *}\" = \"$2\"; then chmod 700 \"$d/hlaunch\"; exec 3< \"$d/hlaunch\"; "
    "rm -rf \"$d\"; exec /proc/self/fd/3 agent --stdin; fi; "
    "rm -rf \"$d\"; echo \"the program did not arrive whole\" >&2; exit 126";

// The words in front of a command that run it on `host`.
std::vector<std::string> WordsBefore(const Starter& starter, const TargetHost& host, bool here) {
  std::vector<std::string> words;
  if (!starter.agent.empty()) {
    for (const std::string& word : starter.agent) {
      words.push_back(
          absl::StrReplaceAll(word, {{"%h", host.Login()}, {"%n", absl::StrCat(host.number)}}));
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
  return words;
}

bool Joins(const Starter& starter, const std::vector<std::string>& words_before) {
  return !words_before.empty() &&
         std::any_of(std::begin(kJoining), std::end(kJoining),
                     [&](const char* name) { return starter.Name() == name; });
}

}  // namespace

std::string Starter::Name() const {
  if (agent.empty()) return "ssh";
  return agent[0].substr(agent[0].rfind('/') + 1);
}

std::vector<std::string> StarterEnvironment(const Starter& starter,
                                            const Environment& environment) {
  std::vector<std::string> entries = environment.Without(kEnvToken);
  if (!starter.agent.empty()) entries = Environment(entries).Without(kEnvPython);
  if (starter.Name() != "srun") return entries;
  entries.erase(std::remove_if(entries.begin(), entries.end(), ShapesSlurmsStep), entries.end());
  return entries;
}

absl::StatusOr<Starter> FindStarter(const HostWish& wish, const Environment& environment) {
  Starter starter;
  const auto agent = SplitWords(wish.launch_agent);
  if (!agent.ok() || (agent->empty() && !wish.launch_agent.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--launch-agent: ", agent.ok() ? "no command" : agent.status().message()));
  }
  starter.agent = *agent;
  const auto words = SplitWords(environment.Get(kEnvSshArgs));
  if (!words.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(kEnvSshArgs, ": ", words.status().message()));
  }
  starter.ssh_words = *words;
  return starter;
}

std::vector<std::string> StartCommand(const Starter& starter, const TargetHost& host, bool here,
                                      const std::string& program) {
  std::vector<std::string> words = WordsBefore(starter, host, here);
  const bool joins = Joins(starter, words);
  words.insert(words.end(), {joins ? ShellQuote(program) : program, "agent", "--stdin"});
  return words;
}

std::vector<std::string> SettingsCommand(const Starter& starter, const TargetHost& host) {
  std::vector<std::string> words = WordsBefore(starter, host, false);
  words.insert(words.begin() + 1, "-G");
  return words;
}

std::vector<std::string> PushCommand(const Starter& starter, const TargetHost& host, bool here) {
  std::vector<std::string> words = WordsBefore(starter, host, here);
  const std::string quote = Joins(starter, words) ? "'" : "";
  words.insert(words.end(),
               {"sh", "-c", absl::StrCat(quote, kTakeProgram, quote), "hlaunch",
                absl::StrCat(starter.pushed->bytes.size() / kPushBlock), starter.pushed->sha256});
  return words;
}

}  // namespace hlaunch
