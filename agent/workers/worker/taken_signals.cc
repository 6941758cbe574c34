// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/taken_signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "agent/workers/process/lack.h"

namespace hlaunch {
namespace {

// The signals that people and schedulers send to hlaunch. The stop signals of a terminal are not
// among them: they stop only the keeper, so that the shell shows its prompt again and `fg` works;
// the job goes on.
constexpr int kEnding[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
constexpr int kPassedOn[] = {SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

SignalNumbers TakenSignals(const SignalNumbers& named) {
  SignalNumbers taken = EndingSignals(named);
  if (named.empty()) taken.insert(taken.end(), std::begin(kPassedOn), std::end(kPassedOn));
  return taken;
}

}  // namespace

SignalNumbers EndingSignals(const SignalNumbers& named) {
  return named.empty() ? SignalNumbers(std::begin(kEnding), std::end(kEnding)) : named;
}

void BlockAgentSignals(const SignalNumbers& named) {
  sigset_t taken, others;
  ::sigemptyset(&taken);
  ::sigemptyset(&others);
  for (const int signal : TakenSignals({})) ::sigaddset(&others, signal);
  for (const int signal : TakenSignals(named)) {
    struct sigaction now;
    const bool ignored = ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
    if (ignored) continue;
    ::sigaddset(&taken, signal);
    ::sigdelset(&others, signal);
  }
  // If SIGCHLD were ignored, the kernel would reap our children before we can.
  ::signal(SIGCHLD, SIG_DFL);
  ::sigaddset(&taken, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  if (!named.empty()) ::pthread_sigmask(SIG_UNBLOCK, &others, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

bool TerminationPending(const SignalNumbers& named) {
  sigset_t pending;
  ::sigpending(&pending);
  const SignalNumbers ending = EndingSignals(named);
  return std::any_of(ending.begin(), ending.end(),
                     [&](int signal) { return ::sigismember(&pending, signal) == 1; });
}

absl::StatusOr<UniqueFd> AgentSignals(const SignalNumbers& named) {
  // Takes the signals that BlockAgentSignals has blocked, whatever was blocked before it; so the
  // result is the same after an exec.
  sigset_t blocked, ours;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGCHLD);
  for (const int signal : TakenSignals(named)) {
    if (::sigismember(&blocked, signal) == 1) ::sigaddset(&ours, signal);
  }
  UniqueFd fd(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("signalfd: ", NoDescriptorWords(errno)));
  }
  return fd;
}

}  // namespace hlaunch
