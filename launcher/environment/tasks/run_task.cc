// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/tasks/run_task.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/keeper.h"
#include "launcher/environment/tasks/task_message.h"
#include "launcher/environment/tasks/task_socket.h"
#include "launcher/text/exit_codes.h"
#include "proto/base/log.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr Duration kMessageTime = seconds(10);
constexpr Duration kKillTime = seconds(5);
constexpr Duration kSilentTime = seconds(10);  // A wait for task 0 is not mentioned before.
// Processes that a successful worker left behind may take this long to end by themselves.
constexpr Duration kLeftoverTime = seconds(2);
// An agent whose keeper was killed ends its workers by itself within 2 s.
constexpr Duration kOrphanTime = seconds(4);

int MillisUntil(std::optional<Instant> when) {
  if (!when.has_value()) return -1;
  const Duration left = std::max(*when - MonotonicClock().Now(), Duration::zero());
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

bool AsksToEnd(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

// A task. Belongs to the main thread of the task's child process, whose parent is its keeper.
class Task {
 public:
  Task(const NodeTasks& tasks, const Environment& environment, UniqueFd listener, UniqueFd signals,
       KeeperLink keeper)
      : tasks_(tasks),
        environment_(environment),
        listener_(std::move(listener)),
        signals_(std::move(signals)),
        keeper_(std::move(keeper)) {}

  // Runs until the job is over. Waits at most `patience` for task 0. Returns the exit code.
  int Serve(Duration patience);

 private:
  void Wait();
  void SayWhatIsMissing();
  void Greet();
  void TakeAgent(UniqueFd socket, ReceivedMessage message);
  void HearAgent();
  void StartWorker(UniqueFd socket, ReceivedMessage message);
  void HearStandIn();
  void WorkerEnded();
  void TellEnd();
  void EndWorker();
  void EndLeftovers();
  void TakeSignals();
  void LoseAgent();
  void Finish(int exit_code) {
    if (!exit_code_.has_value()) exit_code_ = exit_code;
  }

  const NodeTasks tasks_;
  const Environment environment_;
  UniqueFd listener_;
  UniqueFd signals_;
  KeeperLink keeper_;
  UniqueFd agent_;     // To task 0; invalid: it has not come, or is gone.
  UniqueFd stand_in_;  // To the worker's stand-in.
  std::vector<std::string> agent_env_;
  std::optional<Process> worker_;
  std::optional<ExitStatus> ended_;  // The worker's end, if the agent does not know it yet.
  std::optional<int> last_code_;     // The exit code of the last worker that ended.
  bool was_told_to_end_ = false;     // The worker was; so its exit code is not its own.
  std::optional<Instant> deadline_;  // When Serve gives up.
  std::optional<Instant> say_at_;    // When it says that it waits for task 0.
  std::optional<int> exit_code_;
};

int Task::Serve(Duration patience) {
  deadline_ = MonotonicClock().Now() + patience;
  // One of them speaks for all.
  if (tasks_.local == 1) say_at_ = std::min(*deadline_, MonotonicClock().Now() + kSilentTime);
  while (!exit_code_.has_value()) Wait();
  listener_.Close();  // The next job of the same step may begin before this one ends.
  EndWorker();
  EndLeftovers();
  return *exit_code_;
}

void Task::Wait() {
  pollfd polls[] = {{listener_.get(), POLLIN, 0},
                    {agent_.valid() ? agent_.get() : -1, POLLIN, 0},
                    {stand_in_.valid() ? stand_in_.get() : -1, POLLIN, 0},
                    {worker_.has_value() ? worker_->pidfd() : -1, POLLIN, 0},
                    {signals_.get(), POLLIN, 0},
                    {keeper_.fd(), POLLIN, 0}};
  const int ready = ::poll(polls, std::size(polls), MillisUntil(say_at_ ? say_at_ : deadline_));
  if (ready < 0 && errno != EINTR) return Finish(kExitInternal);
  if (ready < 0) return;
  if (ready == 0 && say_at_) return SayWhatIsMissing();
  if (ready == 0) return Finish(agent_env_.empty() ? kExitUsage : kExitAgentLost);
  if (polls[5].revents != 0) return Finish(kExitAgentLost);
  if (polls[4].revents != 0) TakeSignals();
  if (polls[3].revents != 0) return WorkerEnded();
  if (polls[2].revents != 0 && stand_in_.valid()) HearStandIn();
  if (polls[1].revents != 0) HearAgent();
  if (polls[0].revents != 0) Greet();
}

// Task 0 knows which task it waits for, but it may be no hlaunch.
void Task::SayWhatIsMissing() {
  say_at_.reset();
  if (*deadline_ > MonotonicClock().Now() + seconds(1)) {
    say_at_ = deadline_;
    return LogInfo(
        absl::StrCat("task 1 of ", tasks_.owner, " waits for hlaunch in task 0 of this node"));
  }
  LogError(absl::StrCat(
      "task 1 of ", tasks_.owner,
      " on this node has heard nothing of hlaunch in task 0: start hlaunch in all tasks of a node, "
      "or in one (",
      tasks_.instead, ")"));
  Finish(kExitUsage);
}

void Task::Greet() {
  UniqueFd socket = AcceptOwn(listener_.get());
  if (!socket.valid()) return;
  auto message = ReceiveTaskMessage(socket.get(), MonotonicClock().Now() + kMessageTime);
  if (!message.ok() || message->words.empty()) return;
  if (message->words[0] == kWordAgent) return TakeAgent(std::move(socket), *std::move(message));
  if (message->words[0] == kWordStart) return StartWorker(std::move(socket), *std::move(message));
}

void Task::TakeAgent(UniqueFd socket, ReceivedMessage message) {
  if (!agent_env_.empty()) return;  // Task 0 has come before, or is gone and this task ends.
  agent_env_.assign(message.words.begin() + 1, message.words.end());
  const int streams[] = {STDOUT_FILENO, STDERR_FILENO};
  const absl::Status sent = SendTaskMessage(
      socket.get(),
      {std::string(kWordTask), absl::StrCat(tasks_.local), absl::StrCat(tasks_.rank), CpusAsWord()},
      streams);
  agent_ = std::move(socket);
  deadline_.reset();
  say_at_.reset();
  if (!sent.ok()) LoseAgent();
}

void Task::HearAgent() {
  const auto message = ReceiveTaskMessage(agent_.get(), MonotonicClock().Now() + kMessageTime);
  int code = kExitInternal;
  if (!message.ok() || message->words.size() != 2 || message->words[0] != kWordJobEnd ||
      !absl::SimpleAtoi(message->words[1], &code)) {
    return LoseAgent();
  }
  Finish(was_told_to_end_ ? code : last_code_.value_or(code));
}

// The keeper of task 0 is gone. The agent may still be ending its workers.
void Task::LoseAgent() {
  agent_.Close();
  if (!worker_.has_value() && !ended_.has_value()) return Finish(kExitAgentLost);
  deadline_ = MonotonicClock().Now() + kOrphanTime;
}

void Task::StartWorker(UniqueFd socket, ReceivedMessage message) {
  EndWorker();
  KillAndReapDescendants(MonotonicClock(), MonotonicClock().Now() + kKillTime);
  absl::StatusOr<WorkerStart> start = StartOf(message.words);
  if (!start.ok() || message.descriptors.size() < 3) return;
  Command command;
  command.argv = std::move(start->argv);
  command.env = EnvironmentInTask(environment_.Without(kEnvToken), agent_env_, start->env);
  command.as_a_shell = true;
  command.working_directory = start->directory;
  command.stdin_fd = message.descriptors[0].get();
  command.stdout_fd = message.descriptors[1].get();
  command.stderr_fd = message.descriptors[2].get();
  if (message.descriptors.size() > 3) command.further_fd = message.descriptors[3].get();
  ::umask(static_cast<mode_t>(start->umask));
  absl::StatusOr<Process> worker = Process::Spawn(std::move(command));
  if (!worker.ok()) {
    const int code = ExitCodeOf(FailedStep::kPrepare, worker.status());
    last_code_ = code;
    SendTaskMessage(socket.get(), {std::string(kWordFailed), absl::StrCat(code),
                                   std::string(worker.status().message())})
        .IgnoreError();
    return;
  }
  worker_ = *std::move(worker);
  stand_in_ = std::move(socket);
  SendTaskMessage(stand_in_.get(), {std::string(kWordStarted), absl::StrCat(worker_->pid())})
      .IgnoreError();
  was_told_to_end_ = false;
  last_code_.reset();
}

void Task::HearStandIn() {
  const auto message = ReceiveTaskMessage(stand_in_.get(), MonotonicClock().Now() + kMessageTime);
  int signal = 0;
  if (!message.ok()) return EndWorker();  // The stand-in was killed, or its agent was.
  if (message->words.size() != 2 || message->words[0] != kWordSignal ||
      !absl::SimpleAtoi(message->words[1], &signal) || signal < 1 || signal >= NSIG) {
    return;
  }
  std::vector<pid_t> owned;
  if (worker_.has_value()) owned.push_back(worker_->pid());
  if (worker_.has_value()) worker_->SignalGroup(signal);
  if (!AsksToEnd(signal)) return;
  was_told_to_end_ = true;
  if (HasChildren(owned)) SignalDescendants(::getpid(), signal, owned);
}

void Task::WorkerEnded() {
  ended_ = worker_->Reap();
  worker_.reset();
  last_code_ = ended_->ShellCode();
  ReapOrphans({});  // An orphan may have ended before the worker.
  if (*last_code_ != 0 && !was_told_to_end_) {
    KillAndReapDescendants(MonotonicClock(), MonotonicClock().Now() + kKillTime);
  }
  TellEnd();
}

// Reports the worker's end to the agent, once. If the worker was told to end, waits for the
// processes that it forked, for the rest of its time: the trainer may be an orphan of a wrapper
// script.
void Task::TellEnd() {
  if (!ended_.has_value() || (was_told_to_end_ && HasChildren())) return;
  SendTaskMessage(stand_in_.get(), {std::string(kWordEnded), absl::StrCat(ended_->exit_code),
                                    absl::StrCat(ended_->signal)})
      .IgnoreError();
  ended_.reset();
  stand_in_.Close();
  if (!agent_.valid() && !agent_env_.empty()) Finish(kExitAgentLost);
}

// Kills the worker, if it lives, and the processes that it forked.
void Task::EndWorker() {
  stand_in_.Close();
  if (!worker_.has_value() && !ended_.has_value()) return;
  was_told_to_end_ = true;
  const Instant deadline = MonotonicClock().Now() + kKillTime;
  if (worker_.has_value()) {
    worker_->SignalGroup(SIGKILL);
    pollfd exited = {worker_->pidfd(), POLLIN, 0};
    if (::poll(&exited, 1, MillisUntil(deadline)) == 1) worker_->Reap();
  }
  worker_.reset();
  ended_.reset();
  KillAndReapDescendants(MonotonicClock(), deadline);
  if (!agent_.valid() && !agent_env_.empty()) Finish(kExitAgentLost);
}

void Task::EndLeftovers() {
  const Instant deadline = MonotonicClock().Now() + kLeftoverTime;
  if (HasChildren()) SignalDescendants(::getpid(), SIGTERM);
  while (HasChildren() && MonotonicClock().Now() < deadline) {
    ::poll(nullptr, 0, 20);
    ReapOrphans({});
  }
  KillAndReapDescendants(MonotonicClock(), MonotonicClock().Now() + kKillTime);
}

void Task::TakeSignals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (AsksToEnd(signal) && agent_env_.empty()) Finish(kExitSignalBase + signal);
  }
  std::vector<pid_t> owned;
  if (worker_.has_value()) owned.push_back(worker_->pid());
  ReapOrphans(owned);
  TellEnd();
}

}  // namespace

int RunTask(const NodeTasks& tasks, const Environment& environment, Duration patience) {
  absl::StatusOr<UniqueFd> listener = ListenAsTask(TaskAddress(tasks.name, tasks.local));
  if (!listener.ok()) {
    LogError(absl::StrCat("task ", tasks.local, " of ", tasks.owner,
                          " on this node: ", listener.status().message()));
    return kExitNoResources;
  }
  return RunUnderKeeper([&](KeeperLink keeper) {
    absl::StatusOr<UniqueFd> signals = AgentSignals();
    if (!signals.ok()) {
      LogError(signals.status().message());
      return kExitNoResources;
    }
    ::signal(SIGPIPE, SIG_IGN);
    keeper.SayBegun();
    return Task(tasks, environment, *std::move(listener), *std::move(signals), std::move(keeper))
        .Serve(patience);
  });
}

}  // namespace hlaunch
