// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/stop_request.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

sigset_t StopSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  return set;
}

void Set(const UniqueFd& event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof(one));
}

// Waits up to `millis` until `fd` is readable; -1 waits for ever. Returns whether it is.
bool Await(int fd, int millis) {
  pollfd entry = {fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&entry, 1, millis);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StopRequest>> StopRequest::Listen(Duration limit,
                                                                 std::function<void()> give_up) {
  const sigset_t stop = StopSignals();
  ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  UniqueFd signals(::signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  UniqueFd asked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd over(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!signals.valid() || !asked.valid() || !over.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot wait for signals: ", std::strerror(errno)));
  }
  std::unique_ptr<StopRequest> request(
      new StopRequest(std::move(signals), std::move(asked), std::move(over)));
  absl::StatusOr<Thread> thread = Thread::Start(
      "hl-stop",
      [self = request.get(), limit, give_up = std::move(give_up)] { self->Run(limit, give_up); });
  if (!thread.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread that waits for signals: ", thread.status().message()));
  }
  request->thread_ = *std::move(thread);
  return request;
}

StopRequest::StopRequest(UniqueFd signals, UniqueFd asked, UniqueFd over)
    : signals_(std::move(signals)), asked_(std::move(asked)), over_(std::move(over)) {}

StopRequest::~StopRequest() {
  if (!thread_.joinable()) return;
  Set(over_);
  thread_.Join();
}

void StopRequest::Run(Duration limit, const std::function<void()>& give_up) {
  pollfd either[] = {{signals_.get(), POLLIN, 0}, {over_.get(), POLLIN, 0}};
  while (::poll(either, 2, -1) < 0) {
  }
  if ((either[0].revents & POLLIN) == 0) return;
  signalfd_siginfo taken;
  [[maybe_unused]] const ssize_t n = ::read(signals_.get(), &taken, sizeof(taken));
  const sigset_t stop = StopSignals();
  ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // The next signal has its default effect.
  Set(asked_);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  if (!Await(over_.get(), static_cast<int>(millis))) give_up();
}

}  // namespace hlaunch
