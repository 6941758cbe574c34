// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/workers/failure/core_file.h"
#include "agent/workers/process/exit_notice.h"
#include "agent/workers/worker/error_file.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "rendezvous/round/cause/first_cause.h"
#include "rendezvous/round/cause/traceback.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

// True if a process of the worker was killed, by what torch, Python or a shell says.
bool LostAChild(const WorkerFailure& failure) {
  const std::string words = ExceptionOf(failure);
  return failure.exit_code == 128 + SIGKILL || absl::StrContains(words, "signal: Killed") ||
         absl::StrContains(words, "Signals.SIGKILL") ||
         absl::StrContains(words, "terminated abruptly");
}

// Fills in what the worker's stderr says of its end.
void AddLastWords(const OutputRelay& relay, WorkerFailure& failure) {
  const std::string text = relay.LongTail(failure.local_rank);
  failure.log_tail = relay.Tail(failure.local_rank);
  if (failure.signal == SIGABRT) {  // The reason stands before torch's stacks of C++.
    std::string reason = LastLines(WithoutCppStacks(text), kMaxTailBytes);
    if (!reason.empty()) failure.log_tail = std::move(reason);
  }
  if (failure.traceback.empty() && failure.signal == 0) failure.traceback = TracebackIn(text);
  if (failure.traceback.empty() && failure.signal == SIGABRT) {
    failure.traceback = TracebackBeforeAbort(text);
  }
  failure.evidence = KernelAssertionIn(text);
  if (!failure.evidence.empty()) failure.kind = FailureKind::kKernelAssertion;
}

constexpr size_t kMaxErrorFileBytes = 256 << 10;

}  // namespace

Command WorkerCommand(const WorkerSpec& spec, const Assignment& assignment, int local_rank,
                      const NodeFacts& facts, const WorkerOutput& output, int further_fd) {
  Command command;
  const OtherProgram* const other =
      OtherProgramOf(spec.others, assignment.first_rank + local_rank, assignment.world_size);
  command.env = WorkerEnv(assignment, local_rank, spec, facts);
  command.argv = WorkerArgv(other == nullptr ? spec.argv : other->argv, local_rank,
                            spec.place_in_words ? &command.env : nullptr);
  if (static_cast<size_t>(local_rank) < spec.stand_ins.size()) {
    const std::vector<std::string>& words = spec.stand_ins[static_cast<size_t>(local_rank)];
    command.argv.insert(command.argv.begin(), words.begin(), words.end());
  }
  command.as_a_shell = true;
  const bool own_place = other != nullptr && !other->directory.empty();
  command.working_directory = own_place ? other->directory : spec.directory;
  command.stdin_fd = spec.stdin_to == StdinTo::kRank0 && local_rank == 0 ? STDIN_FILENO : -1;
  command.stdout_fd = output.out.get();
  command.stderr_fd = output.err.get();
  command.further_fd = further_fd;
  command.descriptor_limit = spec.descriptor_limit;
  if (static_cast<size_t>(local_rank) < spec.bindings.size()) {
    command.cpus = spec.bindings[local_rank].cpus;
    command.memory_node = spec.bindings[local_rank].memory_node;
  }
  return command;
}

// Holds a copy of the pidfd. epoll reports descriptors in the order in which they became ready. So
// failures come in the order of deaths, whatever the loop was busy with.
struct WorkerProcess::Exit {
  explicit Exit(asio::io_context& loop) : pidfd(loop) {}
  asio::posix::stream_descriptor pidfd;
};

WorkerProcess::WorkerProcess(Process process, int local_rank, std::string error_file,
                             std::string log_file)
    : process_(std::move(process)),
      local_rank_(local_rank),
      error_file_(std::move(error_file)),
      log_file_(std::move(log_file)) {}
WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept = default;
WorkerProcess::~WorkerProcess() = default;

absl::Status WorkerProcess::Watch(asio::io_context& loop, std::function<void()> on_exit) {
  exit_ = std::make_unique<Exit>(loop);
  UniqueFd fd(::fcntl(process_.pidfd(), F_DUPFD_CLOEXEC, 0));
  asio::error_code error(errno, asio::system_category());
  if (fd.valid()) exit_->pidfd.assign(fd.get(), error);
  if (error && !exit_->pidfd.is_open()) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot watch a worker: ", error.message()));
  }
  fd.Release();
  exit_->pidfd.async_wait(asio::posix::descriptor_base::wait_read,
                          [this, on_exit = std::move(on_exit)](const asio::error_code& cancelled) {
                            if (!cancelled && alive_) on_exit();
                          });
  return absl::OkStatus();
}

bool WorkerProcess::AwaitExit(Instant deadline) const {
  return AwaitExitNotice(process_.pidfd(), deadline);
}

ExitStatus WorkerProcess::Reap() {
  const ExitStatus status = process_.Reap();
  alive_ = false;
  exit_.reset();
  return status;
}

void WorkerProcess::Blame(const std::string& reason, FailureKind kind) {
  kill_reason_ = reason;
  kill_kind_ = kind;
}

void WorkerProcess::Blame(const StalledWorker& stalled) {
  Blame(stalled.reason, stalled.kind);
  stalled_ = stalled;
}

WorkerFailure WorkerProcess::Failure(const Assignment& assignment, pid_t pid,
                                     const ExitStatus& exit, const OutputRelay& relay,
                                     const MemoryKills& before) const {
  WorkerFailure failure;
  failure.rank = assignment.first_rank + local_rank_;
  failure.local_rank = local_rank_;
  failure.node_rank = assignment.node_rank;
  failure.pid = pid;
  failure.exit_code = exit.exit_code;
  failure.signal = exit.signal;
  failure.wall_ms = WallMillis();
  const ErrorFile error = ParseErrorFile(ReadErrorFile(error_file_, kMaxErrorFileBytes));
  failure.message = error.message;
  failure.log_file = log_file_;
  failure.traceback = error.traceback;
  AddLastWords(relay, failure);
  if (!kill_reason_.empty()) {
    failure.evidence = kill_reason_;
    failure.kind = kill_kind_;
  }
  failure.no_restart = stalled_.no_restart;
  failure.hung = !stalled_.reason.empty() && stalled_.kind != FailureKind::kWroteLine;
  if (!stalled_.frames.empty()) {
    failure.traceback = stalled_.traceback;
    failure.log_tail = stalled_.frames;
  }
  if (exit.signal == SIGKILL && kill_reason_.empty()) {
    const KillVerdict verdict = ExplainKill(before, ReadMemoryKills());
    failure.out_of_memory = verdict.out_of_memory;
    failure.kind = FailureKind::kOther;
    failure.evidence = verdict.evidence;
  } else if (LostAChild(failure)) {
    const KillVerdict verdict = ExplainKill(before, ReadMemoryKills());
    failure.out_of_memory = verdict.out_of_memory;
    if (verdict.out_of_memory) {
      failure.kind = FailureKind::kOther;
      failure.evidence =
          absl::StrReplaceAll(verdict.evidence, {{"killed it", "killed one of its processes"}});
    }
  }
  if (exit.core && failure.evidence.empty()) failure.evidence = WhereTheCoreIs(pid);
  return failure;
}

std::vector<pid_t> AlivePids(const std::vector<WorkerProcess>& workers) {
  std::vector<pid_t> pids;
  for (const WorkerProcess& worker : workers) {
    if (worker.alive()) pids.push_back(worker.pid());
  }
  return pids;
}

void SignalGroups(const std::vector<WorkerProcess>& workers, int signal) {
  for (const WorkerProcess& worker : workers) {
    if (worker.alive()) worker.SignalGroup(signal);
  }
}

std::vector<int> GivenUp(const std::vector<WorkerProcess>& workers, const OutputRelay& relay) {
  std::vector<int> local_ranks;
  for (const WorkerProcess& worker : workers) {
    const bool ends = worker.alive() && HasGivenUp(relay.LongTail(worker.local_rank()));
    if (ends) local_ranks.push_back(worker.local_rank());
  }
  return local_ranks;
}

}  // namespace hlaunch
