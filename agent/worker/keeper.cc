// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker/keeper.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/worker/descendants.h"
#include "agent/worker/process.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr seconds kCleanUpTime(10);
constexpr seconds kObituaryTime(5);

// What people and schedulers say to hlaunch. The stop signals of a terminal are not here: they
// stop the keeper alone, so that the shell has its prompt back and `fg` works; the job goes on.
constexpr int kEnding[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
constexpr int kPassedOn[] = {SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

SignalNumbers TakenSignals(const SignalNumbers& named) {
  SignalNumbers taken = EndingSignals(named);
  if (named.empty()) taken.insert(taken.end(), std::begin(kPassedOn), std::end(kPassedOn));
  return taken;
}

struct Obituary {
  std::vector<std::string> argv;
  std::vector<std::string> env;
};

// "2\0argv0\0argv1\0NAME=value": the count of argv, then all strings, a NUL between each.
std::string Encode(const Obituary& obituary) {
  std::vector<std::string> parts = {absl::StrCat(obituary.argv.size())};
  parts.insert(parts.end(), obituary.argv.begin(), obituary.argv.end());
  parts.insert(parts.end(), obituary.env.begin(), obituary.env.end());
  return absl::StrJoin(parts, absl::string_view("\0", 1));
}

std::optional<Obituary> Decode(absl::string_view message) {
  const std::vector<std::string> parts = absl::StrSplit(message, '\0');
  size_t argc = 0;
  if (!absl::SimpleAtoi(parts[0], &argc) || argc == 0 || argc >= parts.size()) return std::nullopt;
  const auto argv_end = parts.begin() + 1 + static_cast<std::ptrdiff_t>(argc);
  return Obituary{{parts.begin() + 1, argv_end}, {argv_end, parts.end()}};
}

// A descriptor of ours must never be 0, 1 or 2 because hlaunch was started without them.
void FillStandardDescriptors() {
  int fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd < 3) fd = ::dup(fd);
  if (fd >= 3) ::close(fd);
}

// What BlockAgentSignals has blocked, whatever the mask held before; so it is the same after an
// exec.
UniqueFd OpenSignalFd(const SignalNumbers& named) {
  sigset_t blocked, ours;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGCHLD);
  for (const int signal : TakenSignals(named)) {
    if (::sigismember(&blocked, signal) == 1) ::sigaddset(&ours, signal);
  }
  return UniqueFd(::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK));
}

// The keeper's state. Belongs to the keeper's only thread.
struct Keeper {
  pid_t agent = 0;
  UniqueFd signals;
  UniqueFd link;
  std::vector<pid_t> spared;  // Children from before: `job & exec hlaunch` in a script.
  std::optional<Obituary> obituary;
  std::optional<ExitStatus> agent_status;
  int ended = 0;  // Of what the agent leaves, before its own death was seen.
};

void ReapAll(Keeper* keeper) {
  siginfo_t info = {};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
    if (info.si_pid == keeper->agent) {
      keeper->agent_status = ExitStatus::Of(info);
      return;  // The rest is cleaned up, and counted, later.
    }
    // A pid that was reaped may come back as another process.
    const auto left = std::remove(keeper->spared.begin(), keeper->spared.end(), info.si_pid);
    const bool was_spared = left != keeper->spared.end();
    keeper->spared.erase(left, keeper->spared.end());
    // A worker is killed as the thread that started it ends (PR_SET_PDEATHSIG), which may be
    // before the last thread of the agent.
    if (!was_spared && info.si_code == CLD_KILLED && info.si_status == SIGKILL) ++keeper->ended;
    info = {};
  }
}

void ReadSignals(Keeper* keeper) {
  signalfd_siginfo info;
  while (!keeper->agent_status.has_value() &&
         ::read(keeper->signals.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) {
      ReapAll(keeper);
    } else {
      ::kill(keeper->agent, signal);  // Not reaped yet, so nobody else has this pid.
    }
  }
}

void ReadLink(Keeper* keeper) {
  std::vector<char> message(kMaxObituaryBytes);
  const ssize_t n = ::recv(keeper->link.get(), message.data(), message.size(), MSG_DONTWAIT);
  if (n > 0) {
    keeper->obituary = Decode(absl::string_view(message.data(), static_cast<size_t>(n)));
  } else if (n == 0) {
    keeper->link.Close();  // The agent is gone or about to go; SIGCHLD says which.
  }
}

void WaitForAgent(Keeper* keeper) {
  while (!keeper->agent_status.has_value()) {
    pollfd polls[] = {{keeper->signals.get(), POLLIN, 0}, {keeper->link.get(), POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0) continue;
    if (polls[1].revents != 0) ReadLink(keeper);
    if (polls[0].revents != 0) ReadSignals(keeper);
  }
  // What the agent said last may still be on its way.
  if (keeper->link.valid()) ReadLink(keeper);
}

KillReport CleanUp(const Keeper& keeper) {
  const Clock& clock = MonotonicClock();
  return KillAndReapDescendants(clock, clock.Now() + kCleanUpTime, keeper.spared);
}

void RunObituary(const Keeper& keeper) {
  Command command;
  command.argv = keeper.obituary->argv;
  command.env = keeper.obituary->env;  // First, so that it wins.
  for (char** entry = environ; *entry != nullptr; ++entry) command.env.push_back(*entry);
  command.stdout_fd = 2;
  absl::StatusOr<Process> process = Process::Spawn(command);
  if (!process.ok()) {
    LogWarning(absl::StrCat("the job was not told: ", process.status().message()));
    return;
  }
  pollfd exited = {process->pidfd(), POLLIN, 0};
  const int ms = std::chrono::duration_cast<std::chrono::milliseconds>(kObituaryTime).count();
  if (::poll(&exited, 1, ms) == 1) process->Reap();
}

int Conclude(Keeper* keeper) {
  const ExitStatus status = *keeper->agent_status;
  KillReport report = CleanUp(*keeper);
  report.ended += keeper->ended;
  const std::string ended = report.ended == 0
                                ? "it left no process behind"
                                : absl::StrCat("ended ", report.ended, " process",
                                               report.ended == 1 ? "" : "es", " it left behind");
  if (status.signal != 0) {
    LogError(absl::StrCat("the agent (pid ", keeper->agent, ") was ", status.ToString(), "; ",
                          ended, status.signal == SIGKILL ? "; out of memory? see dmesg" : ""));
  } else if (report.ended > 0) {
    LogWarning(absl::StrCat("the agent has exited; ", ended));
  }
  for (const ProcessEntry& entry : report.stuck) {
    LogError(absl::StrCat("cannot end ", entry.ToString(), "; left alone"));
  }
  if (status.signal == 0) return status.exit_code;
  if (keeper->obituary.has_value()) {
    RunObituary(*keeper);
    CleanUp(*keeper);
  }
  return kExitAgentLost;
}

int BeKeeper(Keeper keeper, const SignalNumbers& named) {
  // A terminal in tostop mode must not stop the keeper for its last words.
  ::signal(SIGTTOU, SIG_IGN);
  ::prctl(PR_SET_NAME, "hlaunch-keeper", 0, 0, 0);
  keeper.signals = OpenSignalFd(named);
  HLAUNCH_CHECK(keeper.signals.valid());
  // What else hlaunch was given is the agent's: a pipe's reader must not wait for the keeper.
  const int low = std::min(keeper.signals.get(), keeper.link.get());
  const int high = std::max(keeper.signals.get(), keeper.link.get());
  if (low > 3) ::syscall(SYS_close_range, 3, low - 1, 0);
  if (high > low + 1) ::syscall(SYS_close_range, low + 1, high - 1, 0);
  ::syscall(SYS_close_range, high + 1, ~0U, 0);
  ::malloc_trim(0);
  WaitForAgent(&keeper);
  return Conclude(&keeper);
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
  // Ignored, it would reap our children behind our back.
  ::signal(SIGCHLD, SIG_DFL);
  ::sigaddset(&taken, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  if (!named.empty()) ::pthread_sigmask(SIG_UNBLOCK, &others, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

absl::StatusOr<KeeperLink> KeeperLink::FromEnv() {
  const char* text = std::getenv(kEnvKeeperFd);
  if (text == nullptr) return absl::NotFoundError(absl::StrCat(kEnvKeeperFd, " is not set"));
  const std::string value = text;
  ::unsetenv(kEnvKeeperFd);
  int fd = -1;
  int type = 0;
  int domain = 0;
  socklen_t size = sizeof(int);
  if (!absl::SimpleAtoi(value, &fd) || fd < 3 ||
      ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET ||
      ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) {
    return absl::InvalidArgumentError(absl::StrCat(
        kEnvKeeperFd, "=", value, " is not a keeper's socket; hlaunch sets it, unset it"));
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return KeeperLink(UniqueFd(fd));
}

std::string KeeperLink::ForExec() {
  ::fcntl(socket_.get(), F_SETFD, 0);
  return absl::StrCat(kEnvKeeperFd, "=", socket_.get());
}

absl::Status KeeperLink::RegisterObituary(const std::vector<std::string>& argv,
                                          const std::vector<std::string>& env) const {
  const std::string message = Encode({argv, env});
  if (argv.empty() || message.size() > kMaxObituaryBytes) {
    return absl::InvalidArgumentError(absl::StrCat("an obituary of ", argv.size(), " words and ",
                                                   message.size(), " bytes; at most ",
                                                   kMaxObituaryBytes, " bytes are kept"));
  }
  if (::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    return absl::UnavailableError(absl::StrCat("the keeper: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

int RunUnderKeeper(absl::FunctionRef<int(KeeperLink)> agent, const SignalNumbers& named) {
  FillStandardDescriptors();
  BlockAgentSignals(named);
  BecomeSubreaper();
  Keeper keeper;
  const auto before = HasChildren() ? Descendants(::getpid()) : std::vector<ProcessEntry>();
  for (const ProcessEntry& entry : before) {
    if (entry.parent == ::getpid()) keeper.spared.push_back(entry.pid);
  }
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    LogError(absl::StrCat("cannot start: no socket: ", std::strerror(errno)));
    return kExitNoResources;
  }
  keeper.link = UniqueFd(sockets[0]);
  UniqueFd agent_end(sockets[1]);
  keeper.agent = ::fork();
  if (keeper.agent < 0) {
    LogError(absl::StrCat("cannot start: no new process: ", std::strerror(errno)));
    return kExitNoResources;
  }
  if (keeper.agent > 0) {
    agent_end.Close();
    return BeKeeper(std::move(keeper), named);
  }
  keeper.link.Close();
  // A terminal signals the keeper's process group; in a session of its own the agent hears of
  // Ctrl-C from the keeper alone, once.
  ::setsid();
  BecomeSubreaper();
  return agent(KeeperLink(std::move(agent_end)));
}

bool TerminationPending(const SignalNumbers& named) {
  sigset_t pending;
  ::sigpending(&pending);
  const SignalNumbers ending = EndingSignals(named);
  return std::any_of(ending.begin(), ending.end(),
                     [&](int signal) { return ::sigismember(&pending, signal) == 1; });
}

absl::StatusOr<UniqueFd> AgentSignals(const SignalNumbers& named) {
  UniqueFd fd = OpenSignalFd(named);
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(absl::StrCat("signalfd: ", std::strerror(errno)));
  }
  return fd;
}

}  // namespace hlaunch
