// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/pmi_meeting.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/net/socket/connect.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr char kKey[] = "hlaunch-comm";
constexpr size_t kMostSaid = 500;       // Hydra's limit for a value is 674.
constexpr size_t kMostLine = 64 << 10;  // The longest line of a server.

absl::string_view ValueOrEmpty(const Environment& environment, const char* name) {
  const auto it = environment.find(name);
  return it == environment.end() ? absl::string_view() : absl::string_view(it->second);
}

// Returns the value of `key` in a line of PMI-1, or "". No value has blanks.
std::string Word(absl::string_view line, absl::string_view key) {
  for (const absl::string_view word : absl::StrSplit(line, ' ')) {
    if (absl::StartsWith(word, absl::StrCat(key, "="))) {
      return std::string(word.substr(key.size() + 1));
    }
  }
  return "";
}

// Waits until `fd` is ready for `events`.
absl::Status Await(int fd, short events, Instant deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
    pollfd wanted{fd, events, 0};
    const int millis = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
    const int ready = ::poll(&wanted, 1, millis);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) break;
    if (left.count() <= 0) break;
  }
  return absl::DeadlineExceededError("PMI: not all ranks have come in time");
}

// This process' conversation with the server. A movable value.
class Conversation {
 public:
  Conversation(UniqueFd fd, Instant deadline) : fd_(std::move(fd)), deadline_(deadline) {}

  // Sends `request`, a line without its end, and returns the answer, which must be `command`.
  absl::StatusOr<std::string> Ask(absl::string_view request, absl::string_view command) {
    HLAUNCH_RETURN_IF_ERROR(Say(absl::StrCat(request, "\n")));
    return Hear(command);
  }

  // Returns the next line, which must be `command`.
  absl::StatusOr<std::string> Hear(absl::string_view command) {
    HLAUNCH_ASSIGN_OR_RETURN(std::string line, NextLine());
    const std::string result = Word(line, "rc");
    if (absl::StartsWith(line, absl::StrCat("cmd=", command)) &&
        (result.empty() || result == "0")) {
      return line;
    }
    return absl::UnavailableError(
        absl::StrCat("PMI: the server says '", line, "' where ", command, " was asked for"));
  }

 private:
  absl::Status Say(absl::string_view text) {
    while (!text.empty()) {
      HLAUNCH_RETURN_IF_ERROR(Await(fd_.get(), POLLOUT, deadline_));
      const ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent > 0) text.remove_prefix(static_cast<size_t>(sent));
      if (sent < 0 && errno != EINTR && errno != EAGAIN) return Gone();
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> NextLine() {
    size_t end;
    while ((end = heard_.find('\n')) == std::string::npos) {
      HLAUNCH_RETURN_IF_ERROR(Await(fd_.get(), POLLIN, deadline_));
      char bytes[1024];
      const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      if (got > 0) heard_.append(bytes, static_cast<size_t>(got));
      const bool again = got < 0 && (errno == EINTR || errno == EAGAIN);
      if ((got <= 0 && !again) || heard_.size() > kMostLine) return Gone();
    }
    std::string line = heard_.substr(0, end);
    heard_.erase(0, end + 1);
    return line;
  }

  static absl::Status Gone() {
    return absl::UnavailableError(
        "PMI: the server that started this program ended the conversation, as it does when another "
        "rank has failed or MPI_Init was called in this process");
  }

  UniqueFd fd_;
  Instant deadline_;
  std::string heard_;
};

// Returns a copy of the descriptor, which stays the environment's.
absl::StatusOr<UniqueFd> Inherited(absl::string_view number) {
  int fd = -1;
  UniqueFd copy;
  if (absl::SimpleAtoi(number, &fd)) copy = UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) return copy;
  return absl::InvalidArgumentError(
      absl::StrCat(kEnvPmiFd, " is '", number, "', which is no descriptor of this process"));
}

// The addresses share the time until `deadline`.
absl::StatusOr<UniqueFd> Dial(absl::string_view where, Instant deadline) {
  const std::vector<std::string> parts = absl::StrSplit(where, absl::MaxSplits(':', 1));
  uint32_t port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(kEnvPmiPort, " is '", where, "', not HOST:PORT"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> literals, ResolveHost(parts[0]));
  for (size_t i = 0; i < literals.size(); ++i) {
    const Instant now = MonotonicClock().Now();
    const Duration share = (deadline - now) / static_cast<int>(literals.size() - i);
    int error = 0;
    UniqueFd fd = BeginToConnect(literals[i], static_cast<uint16_t>(port), &error);
    if (!fd.valid() || !Await(fd.get(), POLLOUT, now + share).ok()) continue;
    socklen_t size = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) return fd;
  }
  return absl::UnavailableError(absl::StrCat("PMI: no server at ", where));
}

absl::StatusOr<int> Number(absl::string_view text, absl::string_view what) {
  int number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= 0) return number;
  return absl::InvalidArgumentError(absl::StrCat("PMI: the ", what, " is '", text, "'"));
}

absl::StatusOr<Conversation> Begin(const Environment& environment, Instant deadline,
                                   PmiMeeting* meeting) {
  std::string rank(ValueOrEmpty(environment, kEnvPmiRank)),
      size(ValueOrEmpty(environment, kEnvPmiSize));
  const bool inherited = !ValueOrEmpty(environment, kEnvPmiFd).empty();
  const absl::string_view id = ValueOrEmpty(environment, kEnvPmiId);
  if (!inherited && (ValueOrEmpty(environment, kEnvPmiPort).empty() || id.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("neither ", kEnvPmiFd, " nor ", kEnvPmiPort, " and ", kEnvPmiId,
                     " is set, which pmi:// needs: start this program by mpiexec of MPICH or Intel "
                     "MPI, or by hlaunch --mpi pmi"));
  }
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd fd,
                           inherited ? Inherited(ValueOrEmpty(environment, kEnvPmiFd))
                                     : Dial(ValueOrEmpty(environment, kEnvPmiPort), deadline));
  Conversation server(std::move(fd), deadline);
  if (!inherited) {
    HLAUNCH_RETURN_IF_ERROR(server.Ask(absl::StrCat("cmd=initack pmiid=", id), "initack").status());
    HLAUNCH_ASSIGN_OR_RETURN(size, server.Hear("set size"));
    HLAUNCH_ASSIGN_OR_RETURN(rank, server.Hear("set rank"));
    HLAUNCH_RETURN_IF_ERROR(server.Hear("set debug").status());
    size = Word(size, "size");
    rank = Word(rank, "rank");
  }
  HLAUNCH_ASSIGN_OR_RETURN(meeting->rank, Number(rank, "rank"));
  HLAUNCH_ASSIGN_OR_RETURN(meeting->size, Number(size, "world's size"));
  return server;
}

// Returns what rank 0 puts where all ranks look: '+' and its text, or '-' and why there is none.
std::string ToPut(const absl::StatusOr<std::string>& said) {
  const std::string text =
      said.ok() ? absl::StrCat("+", *said)
                : absl::StrCat("-", absl::StrReplaceAll(said.status().message(), {{" ", "_"}}));
  return text.substr(0, kMostSaid);
}

}  // namespace

absl::StatusOr<PmiMeeting> MeetByPmi(const Environment& environment,
                                     const std::function<absl::StatusOr<std::string>()>& say,
                                     Instant deadline) {
  PmiMeeting meeting;
  HLAUNCH_ASSIGN_OR_RETURN(Conversation server, Begin(environment, deadline, &meeting));
  HLAUNCH_RETURN_IF_ERROR(
      server.Ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init").status());
  HLAUNCH_ASSIGN_OR_RETURN(std::string space, server.Ask("cmd=get_my_kvsname", "my_kvsname"));
  const std::string where = absl::StrCat(" kvsname=", Word(space, "kvsname"), " key=", kKey);
  if (meeting.rank == 0) {
    const std::string put = absl::StrCat("cmd=put", where, " value=", ToPut(say()));
    HLAUNCH_RETURN_IF_ERROR(server.Ask(put, "put_result").status());
  }
  HLAUNCH_RETURN_IF_ERROR(server.Ask("cmd=barrier_in", "barrier_out").status());
  HLAUNCH_ASSIGN_OR_RETURN(std::string got,
                           server.Ask(absl::StrCat("cmd=get", where), "get_result"));
  HLAUNCH_RETURN_IF_ERROR(server.Ask("cmd=finalize", "finalize_ack").status());
  meeting.said = Word(got, "value");
  if (absl::StartsWith(meeting.said, "+")) {
    meeting.said.erase(0, 1);
    return meeting;
  }
  return absl::UnavailableError(absl::StrCat("rank 0 has no store: ", meeting.said));
}

}  // namespace hlaunch
