// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/events/event_hook.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/close_range.h"
#include "proto/base/log.h"
#include "proto/base/now.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr char kEnvEventsFd[] = "HLAUNCH_EVENTS_FD";
constexpr size_t kMaxEvent = 64 << 10;
// A failure is reported once, and then at most this often.
constexpr Duration kTellAgain = std::chrono::minutes(10);

bool IsSocketOfEvents(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

// The process that delivers events. Belongs to its only thread.
class Giver {
 public:
  Giver(int socket, const EventReceiver& receiver) : socket_(socket), receiver_(receiver) {}

  void Run() {
    std::string event;
    while (Next(&event)) {
      if (!end_ && NobodySends()) end_ = Now() + EventHook::kLastWords;
      if (end_ && Now() >= *end_) {
        ++untold_;
        continue;
      }
      const Instant limit = Now() + EventHook::kDeliverLimit;
      Note(DeliverEvent(receiver_, event, end_ ? std::min(limit, *end_) : limit));
    }
    if (untold_ > 0) {
      LogWarning(absl::StrCat("--on-event: ", receiver_.Name(), " was not told of the last ",
                              untold_, untold_ == 1 ? " event" : " events"));
    }
  }

 private:
  // Waits for the next event. Returns false if no more will come.
  bool Next(std::string* event) const {
    event->resize(kMaxEvent);
    ssize_t size = 0;
    do {
      size = ::recv(socket_, event->data(), event->size(), 0);
    } while (size < 0 && errno == EINTR);
    event->resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return size > 0;
  }

  bool NobodySends() const {
    pollfd asked = {socket_, POLLRDHUP, 0};
    return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLHUP)) != 0;
  }

  void Note(const absl::Status& given) {
    if (given.ok()) return;
    ++failed_;
    if (Now() < tell_from_) return;
    tell_from_ = Now() + kTellAgain;
    LogWarning(absl::StrCat("--on-event: ", receiver_.Name(), " was not told of an event",
                            failed_ > 1 ? absl::StrCat(", the ", failed_, "th") : "", ": ",
                            given.message(), "; the job goes on"));
  }

  const int socket_;
  const EventReceiver& receiver_;
  std::optional<Instant> end_;  // Set once no agent sends any more.
  Instant tell_from_;
  int failed_ = 0;
  int untold_ = 0;  // Not delivered at the end.
};

// Ignores the signals that stop the job: this process ends when no agent sends any more.
void LeaveSignalsToTheJob() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGTTOU}) {
    ::signal(signal, SIG_IGN);
  }
  ::signal(SIGCHLD, SIG_DFL);
}

[[noreturn]] void BeGiver(int socket, const EventReceiver& receiver) {
  ::setsid();
  ::prctl(PR_SET_NAME, "hlaunch-events", 0, 0, 0);
  LeaveSignalsToTheJob();
  // Closes inherited pipes: their readers must not wait for this process.
  ::dup2(socket, 3);
  CloseRange(4);
  ::fcntl(3, F_SETFD, FD_CLOEXEC);
  Giver(3, receiver).Run();
  ::_exit(0);
}

}  // namespace

absl::StatusOr<EventHook> EventHook::Begin(const EventReceiver& receiver) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ResourceExhaustedError(std::strerror(errno));
  }
  // Moved above stdin, stdout and stderr, which may be closed here and are filled later.
  const UniqueFd low[] = {UniqueFd(ends[0]), UniqueFd(ends[1])};
  UniqueFd ours(::fcntl(ends[0], F_DUPFD_CLOEXEC, 3)), theirs(::fcntl(ends[1], F_DUPFD_CLOEXEC, 3));
  if (!ours.valid() || !theirs.valid()) return absl::ResourceExhaustedError(std::strerror(errno));
  const pid_t giver = ::fork();
  if (giver < 0) return absl::ResourceExhaustedError(std::strerror(errno));
  if (giver == 0) {
    ours.Close();
    BeGiver(theirs.get(), receiver);
  }
  return EventHook(std::move(ours));
}

EventHook EventHook::FromEnv() {
  const char* const text = std::getenv(kEnvEventsFd);
  int fd = -1;
  const bool ours =
      text != nullptr && absl::SimpleAtoi(text, &fd) && fd > 2 && IsSocketOfEvents(fd);
  ::unsetenv(kEnvEventsFd);
  if (!ours) return {};
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return EventHook(UniqueFd(fd));
}

std::string EventHook::ForExec() const {
  if (!any()) return "";
  ::fcntl(socket_.get(), F_SETFD, 0);
  return absl::StrCat(kEnvEventsFd, "=", socket_.get());
}

void EventHook::Send(string_view event) {
  if (!any()) return;
  const std::string text = WithDropped(event, dropped_);
  const bool fits = text.size() <= kMaxEvent;
  const bool sent =
      fits && ::send(socket_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
  if (!sent && dropped_ == 0) {
    LogWarning(
        absl::StrCat("--on-event: ",
                     fits ? "events come faster than they are taken; some are"
                          : absl::StrCat("an event of ", text.size(), " bytes is too large; it is"),
                     " dropped and counted"));
  }
  dropped_ = sent ? 0 : dropped_ + 1;
}

void EventHook::Finish() const {
  if (any()) ::shutdown(socket_.get(), SHUT_WR);
}

bool EventHook::AwaitGiven(Instant until) const {
  if (!any()) return true;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Now()).count();
  pollfd asked = {socket_.get(), POLLIN, 0};  // Readable: it has ended.
  return ::poll(&asked, 1, static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX))) > 0;
}

std::string WithDropped(string_view event, int dropped) {
  string_view object = absl::StripSuffix(event, "\n");
  if (dropped == 0 || !absl::ConsumeSuffix(&object, "}")) return std::string(event);
  return absl::StrCat(object, ",\"dropped\":", dropped, "}\n");
}

}  // namespace hlaunch
