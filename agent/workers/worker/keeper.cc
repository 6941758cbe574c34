// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/keeper.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/workers/process/close_range.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/lack.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/death_report.h"
#include "agent/workers/worker/fence.h"
#include "agent/workers/worker/standstill.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/thread.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr seconds kCleanUpTime(10);
constexpr seconds kDeathReportTime(5);
constexpr seconds kDyingTime(1);  // For a killed agent to die, unless it is stuck in the kernel.
constexpr seconds kAskedTime(5);  // For an agent that has not begun, from a signal to its end.
constexpr seconds kPaused(1);     // If the keeper itself is later than this, it was paused.

// None of our descriptors may become 0, 1 or 2 when hlaunch was started without those.
void FillStandardDescriptors() {
  int fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd < 3) fd = ::dup(fd);
  if (fd >= 3) ::close(fd);
}

// The keeper's state. Belongs to the keeper's only thread.
struct Keeper {
  pid_t agent = 0;
  UniqueFd signals;
  UniqueFd link;
  std::vector<pid_t> spared;  // Earlier children: `job & exec hlaunch` in a script.
  std::optional<DeathReport> death_report;
  std::vector<std::string> directories;  // The agent's own directories.
  Fence fence;
  std::optional<Instant> begin_until;  // Unset: the agent has begun.
  SignalNumbers ending;                // The signals that ask the agent to end.
  int asked = 0;                       // The first of them before the agent had begun; 0: none.
  std::string standstill;              // Why the agent was killed; empty if it was not.
  int killed_code = kExitAgentLost;    // The exit code if the agent was killed.
  std::optional<ExitStatus> agent_status;
  int ended = 0;  // The agent's processes killed before its own death was seen.
};

void ReapAll(Keeper* keeper) {
  siginfo_t info = {};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
    if (info.si_pid == keeper->agent) {
      keeper->agent_status = ExitStatus::Of(info);
      return;  // Conclude cleans up and counts the rest.
    }
    // A reaped pid may be reused by another process.
    const auto left = std::remove(keeper->spared.begin(), keeper->spared.end(), info.si_pid);
    const bool was_spared = left != keeper->spared.end();
    keeper->spared.erase(left, keeper->spared.end());
    // A worker is killed when the thread that started it ends (PR_SET_PDEATHSIG). That can be
    // before the agent's last thread ends.
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
      continue;
    }
    ::kill(keeper->agent, signal);  // The agent is not reaped yet: the pid is its own.
    const bool ends = std::count(keeper->ending.begin(), keeper->ending.end(), signal) > 0;
    if (!ends || !keeper->begin_until.has_value() || keeper->asked != 0) continue;
    keeper->asked = signal;
    keeper->begin_until = std::min(*keeper->begin_until, MonotonicClock().Now() + kAskedTime);
  }
}

// Handles one message. Returns false if there is none.
bool ReadLink(Keeper* keeper) {
  char message[kMaxDeathReportBytes];  // Not filled first: most messages are short.
  const ssize_t n = ::recv(keeper->link.get(), message, sizeof message, MSG_DONTWAIT);
  if (n > 0) {
    const absl::string_view text(message, static_cast<size_t>(n));
    if (const std::optional<Instant> until = DecodeSignOfLife(text)) {
      keeper->fence.Allow(*until, MonotonicClock().Now());
    } else if (text == kBegunWord) {
      keeper->begin_until.reset();
    } else if (absl::StartsWith(text, kDirectoryWord)) {
      keeper->directories.emplace_back(text.substr(kDirectoryWord.size()));
    } else {
      keeper->death_report = DecodeDeathReport(text);
    }
  } else if (n == 0) {
    keeper->link.Close();  // The agent is gone or about to go; SIGCHLD tells which.
  }
  return n > 0;
}

// Waits for a signal or a message and handles it. Gives up at `until`; unset: never.
void TakeNext(Keeper* keeper, std::optional<Instant> until) {
  int ms = -1;
  if (until.has_value()) {
    const Duration left = std::max(*until - MonotonicClock().Now(), Duration::zero());
    ms = static_cast<int>(
        std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, seconds(3600)))
            .count());
  }
  pollfd polls[] = {{keeper->signals.get(), POLLIN, 0}, {keeper->link.get(), POLLIN, 0}};
  if (::poll(polls, 2, ms) < 0) return;
  if (polls[1].revents != 0) ReadLink(keeper);
  if (polls[0].revents != 0) ReadSignals(keeper);
}

std::string WhyTheFenceFell(const Keeper& keeper) {
  const Instant now = MonotonicClock().Now();
  if (!keeper.fence.Overdue(now)) {
    return "could not end its workers before other nodes may go on without them";
  }
  const double silence = std::chrono::duration<double>(keeper.fence.Silence(now)).count();
  return absl::StrCat("has stood still for ", absl::StrFormat("%.1f", silence), " s (it ",
                      DescribeStandstill(keeper.agent),
                      "), and other nodes may go on without its workers");
}

// Kills the workers, and the agent with them so that it cannot report their deaths as failures.
void EndAgent(Keeper* keeper, std::string why) {
  keeper->standstill = std::move(why);
  // The kernel kills the workers of an agent that dies, but not those of one that is stuck in the
  // kernel.
  const std::vector<ProcessEntry> below = Descendants(keeper->agent);
  ::kill(keeper->agent, SIGKILL);
  for (const ProcessEntry& entry : below) SignalProcess(entry, SIGKILL);
  const Instant give_up = MonotonicClock().Now() + kDyingTime;
  while (!keeper->agent_status.has_value() && MonotonicClock().Now() < give_up) {
    TakeNext(keeper, give_up);
  }
  if (keeper->agent_status.has_value()) return;
  keeper->agent_status = ExitStatus{0, SIGKILL, false};  // What it still does no longer counts.
}

// Ends an agent that has not begun in time. Something that it needs never comes: a thread that the
// kernel refuses, a file system that does not answer.
void EndUnlessBegun(Keeper* keeper, Duration begin_time) {
  while (keeper->link.valid() && ReadLink(keeper)) {
  }
  const Instant now = MonotonicClock().Now();
  if (!keeper->begin_until.has_value() || now < *keeper->begin_until) return;
  if (now > *keeper->begin_until + kPaused) {  // The agent was paused too, perhaps.
    keeper->begin_until = now + kAskedTime;
    return;
  }
  const std::string where = absl::StrCat(" (it ", DescribeStandstill(keeper->agent), ")");
  if (keeper->asked != 0) {
    keeper->killed_code = kExitSignalBase + keeper->asked;
    EndAgent(keeper, absl::StrCat("has not begun its work, nor ended after ",
                                  SignalName(keeper->asked), where));
  } else {
    keeper->killed_code = kExitNoResources;
    const double limit = std::chrono::duration<double>(begin_time).count();
    EndAgent(keeper, absl::StrCat("has not begun its work within ", limit, " s", where));
  }
}

// When WaitForAgent has to look at the clock; unset if only a message or a signal changes anything.
std::optional<Instant> NextLook(const Keeper& keeper) {
  const std::optional<Instant> fence = keeper.fence.NextLook(MonotonicClock().Now());
  if (!fence.has_value() || !keeper.begin_until.has_value()) {
    return fence.has_value() ? fence : keeper.begin_until;
  }
  return std::min(*fence, *keeper.begin_until);
}

void WaitForAgent(Keeper* keeper, Duration begin_time) {
  while (!keeper->agent_status.has_value()) {
    TakeNext(keeper, NextLook(*keeper));
    if (keeper->agent_status.has_value()) break;
    const Instant now = MonotonicClock().Now();
    if (keeper->fence.Fallen(now)) {
      EndAgent(keeper, WhyTheFenceFell(*keeper));
    } else if (keeper->begin_until.has_value() && now >= *keeper->begin_until) {
      EndUnlessBegun(keeper, begin_time);
    }
  }
  // The agent's last messages may still be unread.
  while (keeper->link.valid() && ReadLink(keeper)) {
  }
}

KillReport CleanUp(const Keeper& keeper) {
  const Clock& clock = MonotonicClock();
  return KillAndReapDescendants(clock, clock.Now() + kCleanUpTime, keeper.spared);
}

void RunDeathReport(const Keeper& keeper) {
  Command command;
  command.argv = keeper.death_report->argv;
  command.env = keeper.death_report->env;  // First, so that it takes precedence.
  for (char** entry = environ; *entry != nullptr; ++entry) command.env.push_back(*entry);
  if (!keeper.standstill.empty()) {
    command.env.push_back(absl::StrCat(kEnvDeathReportReason, "=its agent ", keeper.standstill));
  }
  command.env.push_back(absl::StrCat(kEnvLogForm, "=", LogFormText()));
  command.stdout_fd = 2;
  absl::StatusOr<Process> process = Process::Spawn(std::move(command));
  if (!process.ok()) {
    LogWarning(absl::StrCat("the job was not told: ", process.status().message()));
    return;
  }
  pollfd exited = {process->pidfd(), POLLIN, 0};
  const int ms = std::chrono::duration_cast<std::chrono::milliseconds>(kDeathReportTime).count();
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
  if (!keeper->standstill.empty()) {
    LogError(absl::StrCat("the agent (pid ", keeper->agent, ") ", keeper->standstill,
                          ": the keeper killed it; ", ended));
  } else if (status.signal != 0) {
    LogError(absl::StrCat("the agent (pid ", keeper->agent, ") was ", status.ToString(), "; ",
                          ended, status.signal == SIGKILL ? "; out of memory? see dmesg" : ""));
  } else if (report.ended > 0) {
    LogWarning(absl::StrCat("the agent has exited; ", ended));
  }
  for (const ProcessEntry& entry : report.stuck) {
    LogError(absl::StrCat("cannot end ", entry.ToString(), "; left alone"));
  }
  if (status.signal == 0) return status.exit_code;
  if (keeper->death_report.has_value()) {
    RunDeathReport(*keeper);
    CleanUp(*keeper);
  }
  // This comes last, since a file system may hang.
  for (const std::string& directory : keeper->directories) {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
  return keeper->killed_code;
}

// The call without which a keeper cannot work and that a filter around this process (seccomp)
// refuses, with errno; null: there is none.
const char* RefusedCall() {
  if (!BecomeSubreaper()) return "prctl(PR_SET_CHILD_SUBREAPER)";
  siginfo_t info = {};
  const bool waits = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno == ECHILD;
  return waits ? nullptr : "waitid";
}

int BeKeeper(Keeper keeper, std::vector<int> kept, Duration begin_time) {
  // A terminal in tostop mode must not stop the keeper when it writes its last messages.
  ::signal(SIGTTOU, SIG_IGN);
  ::prctl(PR_SET_NAME, "hlaunch-keeper", 0, 0, 0);
  // The other descriptors that hlaunch inherited are the agent's: a pipe's reader must not wait for
  // the keeper.
  kept.push_back(keeper.signals.get());
  kept.push_back(keeper.link.get());
  std::sort(kept.begin(), kept.end());
  unsigned next = 3;
  for (const int fd : kept) {
    CloseRange(next, static_cast<unsigned>(fd) - 1);
    next = static_cast<unsigned>(fd) + 1;
  }
  CloseRange(next);
  ::malloc_trim(0);
  keeper.begin_until = MonotonicClock().Now() + begin_time;
  WaitForAgent(&keeper, begin_time);
  return Conclude(&keeper);
}

}  // namespace

int RunUnderKeeper(absl::FunctionRef<int(KeeperLink)> agent, const SignalNumbers& named,
                   std::vector<int> kept, Duration begin_time) {
  FillStandardDescriptors();
  if (::access("/proc/self/stat", R_OK) != 0) {
    LogError(
        "cannot start: /proc is missing, and without it no process that workers leave behind can "
        "be found; mount it (mount -t proc proc /proc; for a chroot, at DIRECTORY/proc)");
    return kExitNoResources;
  }
  BlockAgentSignals(named);
  if (const char* const call = RefusedCall()) {
    LogError(absl::StrCat("cannot start: ", call, " is refused: ", std::strerror(errno),
                          ", and without it no end of a process can be seen; allow it in the ",
                          "container's seccomp profile"));
    return kExitNoResources;
  }
  Keeper keeper;
  const auto before = HasChildren() ? Descendants(::getpid()) : std::vector<ProcessEntry>();
  for (const ProcessEntry& entry : before) {
    if (entry.parent == ::getpid()) keeper.spared.push_back(entry.pid);
  }
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    LogError(absl::StrCat("cannot start: no socket: ", NoDescriptorWords(errno)));
    return kExitNoResources;
  }
  keeper.link = UniqueFd(sockets[0]);
  UniqueFd agent_end(sockets[1]);
  absl::StatusOr<UniqueFd> signals = AgentSignals(named);
  if (!signals.ok()) {
    LogError(absl::StrCat("cannot start: ", signals.status().message()));
    return kExitNoResources;
  }
  keeper.signals = *std::move(signals);
  keeper.ending = EndingSignals(named);
  const pid_t keeper_pid = ::getpid();
  keeper.agent = ::fork();
  if (keeper.agent < 0) {
    LogError(absl::StrCat("cannot start: no new process: ", NoThreadWords(errno)));
    return kExitNoResources;
  }
  if (keeper.agent > 0) {
    agent_end.Close();
    return BeKeeper(std::move(keeper), std::move(kept), begin_time);
  }
  // Until the agent has begun, it does not look at the keeper's end.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper_pid) return kExitAgentLost;
  keeper.link.Close();
  keeper.signals.Close();
  // A terminal sends signals to the keeper's process group. In its own session the agent gets
  // Ctrl-C only once, from the keeper.
  ::setsid();
  BecomeSubreaper();
  return agent(KeeperLink(std::move(agent_end)));
}

}  // namespace hlaunch
