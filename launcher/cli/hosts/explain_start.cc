// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/explain_start.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/text/printable.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr int kSshFailed = 255;

// Words in ssh's output, and what helps. %h is the host without a user, %l the host with it. The
// first row that fits counts.
struct SshRow {
  const char* words;
  const char* way_out;
  bool try_again = false;
};
constexpr SshRow kSshRows[] = {
    {"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "if the host was set up anew: ssh-keygen -R %h, then ssh-keyscan -H %h >> ~/.ssh/known_hosts"},
    {"has changed and you have requested strict checking",
     "if the host was set up anew: ssh-keygen -R %h, then ssh-keyscan -H %h >> ~/.ssh/known_hosts"},
    {"Host key verification failed",
     "ssh does not know the host yet: ssh-keyscan -H %h >> ~/.ssh/known_hosts"},
    {"Permission denied",
     "the host takes no key of yours: ssh-copy-id %l; a key with a passphrase must be in the agent "
     "(ssh-add); try: ssh -oBatchMode=yes %l true"},
    {"Too many authentication failures",
     "name the one key in ~/.ssh/config: IdentityFile, IdentitiesOnly yes"},
    {"Could not resolve hostname", "check the name; getent hosts %h must find it here"},
    {"Connection refused",
     "no sshd listens there: systemctl status ssh, or another port in ~/.ssh/config"},
    {"Connection timed out during banner exchange", "sshd there, or this host, is very busy", true},
    {"Connection timed out", "the host is down, or a firewall drops what comes: ping %h"},
    {"No route to host", "the host is down or its cable is out: ping %h"},
    {"Network is unreachable", "this host has no route there: ip route get %h"},
    {"kex_exchange_identification", "sshd drops connections: raise MaxStartups there", true},
    {"Connection closed by remote host", "sshd drops connections: raise MaxStartups there", true},
    {"Connection reset by peer", "sshd drops connections: raise MaxStartups there", true},
    {"This account is currently not available",
     "the account there has no shell: see its line in /etc/passwd"},
};

std::string Fill(string_view text, const FailedStart& failed) {
  const std::string host = failed.host.substr(failed.host.find('@') + 1);
  std::string filled;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 1 == text.size()) {
      filled.push_back(text[i]);
      continue;
    }
    absl::StrAppend(&filled, text[++i] == 'h' ? host : failed.host);
  }
  return filled;
}

// The last line that says something.
std::string LastLine(const FailedStart& failed) {
  for (auto line = failed.last_lines.rbegin(); line != failed.last_lines.rend(); ++line) {
    std::string shown = PrintableLine(*line);
    if (!shown.empty()) return shown;
  }
  return "";
}

std::string HowItEnded(const FailedStart& failed) {
  if (failed.signal != 0) return absl::StrCat("killed by signal ", failed.signal);
  return absl::StrCat("exit code ", failed.exit_code.value_or(0));
}

StartVerdict ExplainAgent(const FailedStart& failed) {
  StartVerdict verdict;
  if (!failed.other_version.empty()) {
    verdict.cause = absl::StrCat("hlaunch there is ", PrintableLine(failed.other_version),
                                 ", and here ", failed.own_version);
    verdict.way_out = absl::StrCat("install the same there (", failed.agent_path,
                                   "), or name one that is with --agent-path, or send this one "
                                   "with --push");
    verdict.needs_program = true;
    return verdict;
  }
  if (!failed.error.empty()) {
    verdict.cause = PrintableLine(failed.error);
    if (failed.error_kind == "directory") {
      verdict.way_out = "make it there, or start from a directory that all hosts have";
    }
    if (failed.error_kind == "reach") {
      verdict.way_out =
          "it was started and cannot connect back: a firewall, or an address that leads elsewhere; "
          "open the port range, or name this host's address with --local-addr";
    }
    return verdict;
  }
  if (failed.timed_out) {
    verdict.cause =
        absl::StrCat("started, and nothing was heard of it for ", failed.waited_s, " s");
    return verdict;
  }
  verdict.cause = absl::StrCat("started, and then it ended: ", HowItEnded(failed));
  const std::string last = LastLine(failed);
  if (!last.empty()) absl::StrAppend(&verdict.cause, ": ", last);
  return verdict;
}

}  // namespace

StartVerdict ExplainStart(const FailedStart& failed) {
  if (failed.started || !failed.other_version.empty() || !failed.error.empty()) {
    return ExplainAgent(failed);
  }
  StartVerdict verdict;
  const std::string last = LastLine(failed);
  for (const SshRow& row : kSshRows) {
    for (const std::string& line : failed.last_lines) {
      if (failed.exit_code == kSshFailed && absl::StrContains(line, row.words)) {
        verdict.cause = absl::StrCat(failed.starter, ": ", PrintableLine(line));
        verdict.way_out = Fill(row.way_out, failed);
        verdict.try_again = row.try_again;
        return verdict;
      }
    }
  }
  if (failed.timed_out) {
    verdict.cause = absl::StrCat(failed.starter, " did not answer within ", failed.waited_s, " s",
                                 last.empty() ? "" : ": ", last);
    if (failed.starter == "ssh") {
      verdict.way_out = Fill(
          "does `ssh %l true` end by itself? A shell's start-up file may wait; --join-timeout sets "
          "how long hlaunch waits while no host gets further",
          failed);
    }
    return verdict;
  }
  verdict.cause = absl::StrCat(failed.starter, last.empty() ? " ended with " : ": ",
                               last.empty() ? HowItEnded(failed) : last);
  if (failed.exit_code == kExitNotFound || failed.exit_code == kExitNotExecutable) {
    if (failed.pushed) {
      verdict.way_out =
          "the host must be of this kind, with sh, mktemp, sha256sum and a dd that knows "
          "iflag=fullblock, and programs must be allowed to run in its TMPDIR, else /tmp";
      return verdict;
    }
    verdict.try_the_path = failed.exit_code == kExitNotFound;
    verdict.needs_program = true;
    verdict.way_out =
        absl::StrCat("expected hlaunch at ", failed.agent_path,
                     " on that host; name its place with --agent-path, or send it with "
                     "--push");
  }
  return verdict;
}

}  // namespace hlaunch
