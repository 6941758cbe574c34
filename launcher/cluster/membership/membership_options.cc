// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/membership_options.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/options/command_table.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/text/printable.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::StrCat;

struct VerbRow {
  const char* word;
  ClusterVerb verb;
  const char* takes;    // What follows it; empty: nothing may.
  const char* options;  // The options that it takes, each followed by a blank.
};

constexpr VerbRow kVerbs[] = {
    {"init", ClusterVerb::kInit, "", "--listen --name "},
    {"join", ClusterVerb::kJoin, "HEAD[:PORT]", "--token --token-file --name "},
    {"token", ClusterVerb::kToken, "", ""},
    {"throw-out", ClusterVerb::kThrowOut, "HOST", ""},
    {"leave", ClusterVerb::kLeave, "", "--end-cluster "},
    {"status", ClusterVerb::kStatus, "", "--json "},
};

std::string HelpText() {
  return StrCat(
      "usage: hlaunch cluster init [--listen PORT|HOST:PORT] [--name HOST]\n"
      "       hlaunch cluster join HEAD[:PORT] --token TOKEN [--name HOST]\n"
      "       hlaunch cluster join HEAD[:PORT] --token-file FILE [--name HOST]\n"
      "       hlaunch cluster token\n"
      "       hlaunch cluster throw-out HOST\n"
      "       hlaunch cluster leave [--end-cluster]\n"
      "       hlaunch cluster status [--json]\n\n"
      "Says which hosts belong to a cluster of your own, where `hlaunch --nnodes 2 train.py` is\n"
      "started on free hosts. `init`, as root on one host, makes the cluster, whose head this "
      "host\n"
      "is then, and prints the line that joins a host; `join`, as root, is that line. Its token "
      "is\n"
      "good for one host and ten minutes. `token`, on the head, prints a new line. `throw-out`, "
      "on\n"
      "the head, ends the certificates of a host and cuts it off. `leave` takes this host out of "
      "the\n"
      "cluster, and what runs there goes on. A script named `cluster` is started as\n"
      "`hlaunch ./cluster`.\n\n",
      DescribeOptions(ClusterOptionRows()),
      "\nExamples:\n"
      "  hlaunch cluster init\n"
      "  hlaunch cluster join node0:29401 --token-file -\n"
      "\nExit code: 0; 2 wrong usage, or no right to it; ",
      kExitBadEndpoint, " the head or hlaunchd does not answer;\n", kExitRefused,
      " the token is wrong, expired or used, or the name is in use.\n");
}

absl::StatusOr<VerbRow> ReadVerb(const std::vector<std::string>& rest) {
  if (rest.empty()) {
    return InvalidArgumentError(
        "hlaunch cluster takes init, join, token, throw-out, leave or status; see hlaunch cluster "
        "--help");
  }
  for (const VerbRow& row : kVerbs) {
    if (row.word == rest[0]) return row;
  }
  return InvalidArgumentError(
      StrCat("hlaunch cluster takes no word like ", PrintableLine(rest[0]),
             " but init, join, token, throw-out, leave or status; to start a script of that name, ",
             "write hlaunch ./cluster"));
}

absl::Status CheckFit(const VerbRow& verb, const TypedWords& read) {
  for (const TypedOption& typed : read.given) {
    const std::string name = StrCat(typed.row->name, " ");
    if (absl::string_view(verb.options).find(name) == absl::string_view::npos) {
      return InvalidArgumentError(
          StrCat("hlaunch cluster ", verb.word, " takes no ", typed.row->name));
    }
  }
  const size_t takes = verb.takes[0] == '\0' ? 0 : 1;
  if (read.rest.size() == takes + 1) return absl::OkStatus();
  return InvalidArgumentError(StrCat("expected: hlaunch cluster ", verb.word, takes > 0 ? " " : "",
                                     verb.takes,
                                     verb.verb == ClusterVerb::kJoin ? " --token TOKEN" : ""));
}

absl::StatusOr<std::string> ReadHostName(absl::string_view what, const std::string& text) {
  const std::string name = absl::AsciiStrToLower(text);
  if (IsClusterHostName(name)) return name;
  return InvalidArgumentError(StrCat(what, " '", PrintableLine(text),
                                     "': expected a host's name, of letters, digits, ",
                                     "'-', '_' and '.'"));
}

absl::StatusOr<Endpoint> ReadListen(const std::string& text) {
  absl::StatusOr<Endpoint> read = ParseListenPlace(text, kClusterPort);
  if (read.ok() && read->port != 0) return read;
  return InvalidArgumentError(StrCat("--listen '", PrintableLine(text), "': ",
                                     read.ok() ? "expected a port" : read.status().message()));
}

absl::StatusOr<Endpoint> ReadHead(const std::string& text) {
  absl::StatusOr<Endpoint> read = ParseEndpoint(text, kClusterPort);
  if (read.ok() && read->port != 0) return read;
  return InvalidArgumentError(StrCat("the head '", PrintableLine(text), "': ",
                                     read.ok() ? "expected a port" : read.status().message()));
}

absl::Status CheckTokenWords(const TypedWords& read) {
  if (read.Has("--token") != read.Has("--token-file")) return absl::OkStatus();
  return InvalidArgumentError(
      "hlaunch cluster join needs the token that `hlaunch cluster token` prints on the head: "
      "--token TOKEN, or --token-file FILE");
}

}  // namespace

absl::StatusOr<MembershipOptions> ParseMembershipOptions(int argc, const char* const* argv) {
  HLAUNCH_ASSIGN_OR_RETURN(
      const TypedWords read,
      ReadWords("hlaunch cluster", ClusterOptionRows(),
                std::vector<std::string>(argv + 2, argv + argc), OptionPlace::kAnywhere));
  MembershipOptions options;
  if (read.Has("--help")) {
    options.text_to_print = HelpText();
    return options;
  }
  HLAUNCH_ASSIGN_OR_RETURN(const VerbRow verb, ReadVerb(read.rest));
  HLAUNCH_RETURN_IF_ERROR(CheckFit(verb, read));
  options.verb = verb.verb;
  options.token = read.Get("--token", "");
  options.token_file = read.Get("--token-file", "");
  options.end_cluster = read.Has("--end-cluster");
  options.json = read.Has("--json");
  options.listen.port = kClusterPort;
  if (read.Has("--name")) {
    HLAUNCH_ASSIGN_OR_RETURN(options.name, ReadHostName("--name", read.Get("--name", "")));
  }
  if (read.Has("--listen")) {
    HLAUNCH_ASSIGN_OR_RETURN(options.listen, ReadListen(read.Get("--listen", "")));
  }
  if (verb.verb == ClusterVerb::kJoin) {
    HLAUNCH_RETURN_IF_ERROR(CheckTokenWords(read));
    HLAUNCH_ASSIGN_OR_RETURN(options.head, ReadHead(read.rest[1]));
  }
  if (verb.verb == ClusterVerb::kThrowOut) {
    HLAUNCH_ASSIGN_OR_RETURN(options.host, ReadHostName("the host", read.rest[1]));
  }
  return options;
}

}  // namespace hlaunch
