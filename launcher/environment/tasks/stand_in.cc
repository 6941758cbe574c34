// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/tasks/stand_in.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/stand_in_name.h"
#include "launcher/environment/tasks/task_message.h"
#include "launcher/environment/tasks/task_socket.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr int kMostDescriptors = 4;  // A worker has its streams and one more.

// The start of the worker, with what this process was given.
WorkerStart OwnStart(int argc, char** argv) {
  WorkerStart start;
  std::error_code error;
  start.directory = std::filesystem::current_path(error).string();
  start.umask = static_cast<int>(::umask(0));
  ::umask(static_cast<mode_t>(start.umask));
  start.argv.assign(argv + 3, argv + argc);
  for (char** entry = environ; *entry != nullptr; ++entry) start.env.emplace_back(*entry);
  return start;
}

std::vector<int> OwnDescriptors() {
  std::vector<int> open;
  for (int fd = 0; fd < kMostDescriptors && ::fcntl(fd, F_GETFD) >= 0; ++fd) open.push_back(fd);
  return open;
}

// Blocks all signals that can be blocked. Returns a descriptor for them.
UniqueFd TakeSignals() {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  return UniqueFd(::signalfd(-1, &all, SFD_CLOEXEC));
}

[[noreturn]] void DieOf(int signal) {
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);  // Only the worker's core matters.
  ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::kill(::getpid(), signal);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::_exit(kExitSignalBase + signal);
}

int EndAs(const TaskMessage& message) {
  int code = 0, signal = 0;
  const bool is_whole = message.size() == 3 && absl::SimpleAtoi(message[1], &code);
  if (is_whole && message[0] == kWordEnded && absl::SimpleAtoi(message[2], &signal)) {
    if (signal != 0) DieOf(signal);
    return code;
  }
  if (is_whole && message[0] == kWordFailed) {
    LogError(message[2]);
    return code;
  }
  LogError("a task of this node does not say how its worker ended");
  return kExitInternal;
}

// Sets the name of this process to one that tells the agent which process the worker is. A task in
// a container counts processes by its own numbers, and such a number is another process here.
void ShowWorker(int task, const TaskMessage& message) {
  int pid = 0;
  if (message.size() != 2 || !absl::SimpleAtoi(message[1], &pid)) return;
  const std::optional<ProcessEntry> worker = ReadProcess(pid);
  const std::optional<ProcessEntry> parent = worker ? ReadProcess(worker->parent) : std::nullopt;
  if (!parent || parent->parent != PeerOf(task)) return;
  ::prctl(PR_SET_NAME, StandInName(pid).c_str(), 0, 0, 0);
}

int Await(int task, int signals) {
  while (true) {
    pollfd polls[] = {{task, POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(polls, std::size(polls), -1) < 0) continue;
    signalfd_siginfo info;
    if (polls[1].revents != 0 && ::read(signals, &info, sizeof(info)) == sizeof(info)) {
      // If this fails, the task is gone, which shows below.
      SendTaskMessage(task, {std::string(kWordSignal), absl::StrCat(info.ssi_signo)}).IgnoreError();
    }
    if (polls[0].revents == 0) continue;
    const auto message = ReceiveTaskMessage(task, MonotonicClock().Now() + kPatience);
    if (message.ok() && message->words[0] == kWordStarted) {
      ShowWorker(task, message->words);
      continue;
    }
    if (message.ok()) return EndAs(message->words);
    LogError("the task that ran this worker was killed, and the worker with it");
    DieOf(SIGKILL);
  }
}

}  // namespace

int RunStandIn(int argc, char** argv) {
  const std::vector<int> descriptors = OwnDescriptors();
  if (argc < 4) {
    LogError(absl::StrCat("`hlaunch ", kStandInWord, "` is for hlaunch's own use"));
    return kExitUsage;
  }
  const UniqueFd signals = TakeSignals();
  const absl::StatusOr<UniqueFd> task = ConnectToTask(argv[2]);
  absl::Status started = task.status();
  if (started.ok()) {
    started = SendTaskMessage(task->get(), MessageOf(OwnStart(argc, argv)), descriptors);
  }
  if (!started.ok()) {
    LogError(absl::StrCat("the task that is to run this worker: ", started.message()));
    return kExitNoResources;
  }
  return Await(task->get(), signals.get());
}

}  // namespace hlaunch
