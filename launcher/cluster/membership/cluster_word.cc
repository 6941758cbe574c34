// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/cluster_word.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/cluster/membership/cluster_status.h"
#include "launcher/cluster/membership/found_cluster.h"
#include "launcher/cluster/membership/join_cluster.h"
#include "launcher/cluster/membership/member_files.h"
#include "launcher/cluster/membership/membership_options.h"
#include "launcher/cluster/membership/start_units.h"
#include "launcher/cluster/membership/token_source.h"
#include "launcher/text/environment.h"
#include "launcher/text/exit_codes.h"
#include "proto/base/address.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/cluster/cluster_messages.h"
#include "proto/cluster/json_fields.h"
#include "proto/contract/exit_code.h"
#include "rendezvous/net/cluster_wire/ask_as_stranger.h"
#include "rendezvous/net/socket/local_addresses.h"
#include "rendezvous/net/trust/openssl_modules.h"

namespace hlaunch {
namespace {

using absl::StrCat;
using std::chrono::seconds;

constexpr Duration kHeadPatience = seconds(15);
constexpr Duration kDaemonPatience = seconds(15);
constexpr char kNeedsRoot[] = "this changes whom the host belongs to, so it needs root: sudo ";

std::time_t Now() { return std::time(nullptr); }

int Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return FlushStdout();
}

int ExitCodeOf(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitBadEndpoint;
    case absl::StatusCode::kInternal:
      return kExitInternal;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kExitUsage;
    default:
      return kExitRefused;
  }
}

int Fail(const absl::Status& why) {
  LogError(why.message());
  return ExitCodeOf(why);
}

std::string NameOfHost(const MembershipOptions& options) {
  return options.name.empty() ? absl::AsciiStrToLower(HostName()) : options.name;
}

std::string SocketPath() { return SocketOfDaemon(Environment::OfThisProcess()); }

// Returns the command that joins a host, on a line of its own to copy. The token comes on stdin,
// because sudo logs the command line and other users can see it.
std::string JoinLines(const std::string& head, const std::string& token, std::time_t until) {
  const std::string at = WallTimeOfMinute(until);
  return StrCat("Run this on the host that is to belong to it, until ", at, ":\n\n  echo ", token,
                " | sudo hlaunch cluster join ", head, " --token-file -\n\n");
}

// Enables and restarts `units` if systemd runs. Returns what was done, or what to do by hand.
std::string StartOrTell(const std::vector<std::string>& units, const std::string& by_hand) {
  if (!SystemdRuns()) return StrCat("No systemd runs here. Start and keep running:\n", by_hand);
  absl::Status asked = AskSystemd({"enable"}, units);
  if (asked.ok()) asked = AskSystemd({"restart"}, units);
  if (asked.ok()) {
    return StrCat("Enabled and started ",
                  units.size() > 1 ? "hlaunch-head and hlaunchd" : "hlaunchd",
                  " (systemctl enable, restart).\n");
  }
  LogWarning(asked.message());
  return StrCat("systemd did not start them. Once the units are installed: systemctl enable --now",
                units.size() > 1 ? " hlaunch-head" : "", " hlaunchd\n");
}

// Where hosts find a head that listens at `listen`.
std::string PlaceOf(const Endpoint& listen, const std::string& host) {
  const bool anywhere = listen.host.empty() || listen.host == "0.0.0.0" || listen.host == "::";
  return HostPort(anywhere ? host : listen.host, listen.port);
}

void ReadUnitsAgain() {
  const absl::Status told = AskSystemd({"daemon-reload"}, {});
  if (!told.ok()) LogWarning(told.message());
}

// Removes the drop-in of a former cluster: its address is not for this one.
void ForgetListen(const std::string& units) {
  const absl::StatusOr<bool> removed = RemoveListenDropIn(units);
  if (!removed.ok()) return LogWarning(removed.status().message());
  if (*removed) ReadUnitsAgain();
}

void SetListen(const std::string& units, const std::string& listen) {
  if (listen == StrCat(kClusterPort)) return ForgetListen(units);
  const absl::Status written = WriteListenDropIn(units, listen);
  if (!written.ok()) LogWarning(written.message());
  ReadUnitsAgain();
}

int Init(const MembershipOptions& options) {
  const ClusterPaths paths;
  const std::string host = NameOfHost(options);
  if (host == "localhost") {
    return Fail(absl::InvalidArgumentError(
        "this host has no name of its own; name it with --name, by a name that other hosts find"));
  }
  const absl::StatusOr<FoundedCluster> made =
      FoundCluster(paths, host, PlaceOf(options.listen, host), Now());
  if (!made.ok()) return Fail(made.status());
  const std::string listen = options.listen.host.empty()
                                 ? StrCat(options.listen.port)
                                 : HostPort(options.listen.host, options.listen.port);
  if (SystemdRuns()) SetListen(paths.units, listen);
  const std::string started =
      StartOrTell({kHeadUnit, kDaemonUnit},
                  StrCat("  hlaunchd head --folder ", paths.head, " --listen ", listen,
                         "   as the user ", kHeadUser, "\n  hlaunchd   as root\n"));
  return Print(StrCat("Made a cluster: ", host, " is its head, at ", made->head, ".\n", started,
                      JoinLines(made->head, made->token, made->until),
                      "It is good for one host. For the next one: hlaunch cluster token\n"));
}

int Join(const MembershipOptions& options) {
  const auto ask = [](const Endpoint& head, const std::string& pin, const Envelope& question) {
    return AskAsStranger(head.host, head.port, pin, question, kHeadPatience);
  };
  const std::string former = NameOf(ClusterPaths());
  const bool keeps_name = options.name.empty() && !former.empty();
  JoinWish wish = {options.head, options.token, keeps_name ? former : NameOfHost(options)};
  if (!options.token_file.empty()) {
    absl::StatusOr<std::string> token = ReadTokenOf(options.token_file);
    if (!token.ok()) return Fail(token.status());
    wish.token = *token;
  }
  if (const absl::Status joined = JoinCluster(ClusterPaths(), wish, ask, Now); !joined.ok()) {
    return Fail(joined);
  }
  const std::string started = StartOrTell({kDaemonUnit}, "  hlaunchd   as root\n");
  return Print(StrCat(wish.host, " belongs to the cluster of ",
                      HostPort(options.head.host, options.head.port), " now.\n", started));
}

// A user without the right to ask made a usage error. A refused token, as in `join`, is not one.
int FailToAsk(const absl::Status& why) {
  if (!absl::IsPermissionDenied(why)) return Fail(why);
  LogError(why.message());
  return kExitUsage;
}

absl::StatusOr<std::string> ReadJoinLines(const nlohmann::json& here,
                                          const nlohmann::json& answer) {
  std::string join, token;
  int valid_s = 0;
  HLAUNCH_ASSIGN_OR_RETURN(const HereAnswer of, ReadHereAnswer(here));
  JsonFields fields(answer, "the head's answer");
  fields.Text("join", &join);
  fields.Text("token", &token);
  fields.Number("valid_s", &valid_s, 0, 1 << 30);
  if (!fields.status().ok()) return absl::InternalError(fields.status().message());
  // This host's name for the head serves other hosts too.
  return JoinLines(of.head.empty() ? join : of.head, token, Now() + valid_s);
}

int Token() {
  LocalClient daemon(SocketPath());
  const absl::StatusOr<nlohmann::json> here =
      daemon.Ask("here", nlohmann::json::object(), kDaemonPatience);
  if (!here.ok()) return FailToAsk(here.status());
  const absl::StatusOr<nlohmann::json> answer =
      daemon.Ask("token", nlohmann::json::object(), kDaemonPatience);
  if (!answer.ok()) return FailToAsk(answer.status());
  const absl::StatusOr<std::string> lines = ReadJoinLines(*here, *answer);
  return lines.ok() ? Print(*lines) : Fail(lines.status());
}

int ThrowOut(const std::string& host) {
  LocalClient daemon(SocketPath());
  const absl::Status here = daemon.Ask("here", nlohmann::json::object(), kDaemonPatience).status();
  if (!here.ok()) return FailToAsk(here);
  const absl::Status thrown = daemon.Ask("throw_out", {{"host", host}}, kDaemonPatience).status();
  if (absl::IsNotFound(thrown)) {
    LogError(thrown.message());
    return kExitRefused;
  }
  if (!thrown.ok()) return FailToAsk(thrown);
  return Print(StrCat("Threw out ", host,
                      ": its certificates count no more. It joins again by a new token alone.\n"));
}

// Removes the socket: if it exists and no process listens, it means that hlaunchd should run.
void RemoveSocket(const std::string& path) {
  struct stat found = {};
  if (::lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) ::unlink(path.c_str());
}

int Leave(const MembershipOptions& options) {
  const ClusterPaths paths;
  const bool is_head = IsHead(paths);
  if (!is_head && !IsMember(paths)) return Print("This host belongs to no cluster.\n");
  if (is_head && !options.end_cluster) {
    LogError(
        "this host is the cluster's head: if it leaves, the cluster ends for all of its hosts; "
        "if that is meant: hlaunch cluster leave --end-cluster");
    return kExitRefused;
  }
  std::vector<std::string> units = {kDaemonUnit};
  if (is_head) units.emplace_back(kHeadUnit);
  if (SystemdRuns()) {
    const absl::Status stopped = AskSystemd({"disable", "--now"}, units);
    if (!stopped.ok()) LogWarning(stopped.message());
  }
  const std::string head = HeadOf(paths), host = NameOf(paths);
  absl::Status removed = RemoveMember(paths);
  if (is_head) removed.Update(RemoveHead(paths));
  if (!removed.ok()) return Fail(removed);
  RemoveSocket(SocketPath());
  if (is_head && SystemdRuns()) ForgetListen(paths.units);
  if (is_head)
    return Print("The cluster has ended. Its other hosts leave by: hlaunch cluster leave\n");
  return Print(
      StrCat("This host has left the cluster of ", head,
             ". What runs here goes on.\nThe head forgets it by: hlaunch cluster throw-out ",
             host.empty() ? "HOST" : host, "\n",
             SystemdRuns() ? "" : "No systemd runs here: end hlaunchd.\n"));
}

int Status(const MembershipOptions& options) {
  const ClusterStatus status = FindStatus(ClusterPaths(), SocketPath(), kDaemonPatience);
  const int printed = Print(options.json ? StatusJson(status) : StatusText(status));
  if (printed != kExitOk) return printed;
  return status.connected ? kExitOk : kExitBadEndpoint;
}

}  // namespace

int RunClusterWord(int argc, char** argv) {
  DoWithoutOpenSslModules();
  ::prctl(PR_SET_DUMPABLE, 0);  // Keeps keys out of core dumps.
  const absl::StatusOr<MembershipOptions> options = ParseMembershipOptions(argc, argv);
  if (options.ok()) WipeFromArguments(argc, argv, options->token);
  if (!options.ok()) return Fail(options.status());
  if (options->text_to_print) return Print(*options->text_to_print);
  const bool changes = options->verb == ClusterVerb::kInit || options->verb == ClusterVerb::kJoin ||
                       options->verb == ClusterVerb::kLeave;
  if (changes && ::geteuid() != 0) {
    LogError(StrCat(kNeedsRoot, "hlaunch cluster ", absl::string_view(argv[2]), " …"));
    return kExitUsage;
  }
  switch (options->verb) {
    case ClusterVerb::kInit:
      return Init(*options);
    case ClusterVerb::kJoin:
      return Join(*options);
    case ClusterVerb::kToken:
      return Token();
    case ClusterVerb::kThrowOut:
      return ThrowOut(options->host);
    case ClusterVerb::kLeave:
      return Leave(*options);
    case ClusterVerb::kStatus:
      return Status(*options);
  }
  return kExitInternal;
}

}  // namespace hlaunch
