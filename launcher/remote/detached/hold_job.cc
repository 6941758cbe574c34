// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/hold_job.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/output/log_file.h"
#include "agent/workers/process/close_range.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/taken_signals.h"
#include "launcher/remote/detached/log_line.h"
#include "launcher/text/programs.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/base/wall_time.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr mode_t kPrivateUmask = 077;
// An unfinished line, as of a progress bar, is written to the log after this time.
constexpr int kPatienceMs = 200;
// Processes that the job left behind may hold its pipes.
constexpr int kPipesEndMs = 500;

void LeaveTerminal() {
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  // Closes inherited pipes: their readers must not wait for the job.
  CloseRange(3);
}

// One of the job's streams on its way to the log. Belongs to one thread.
struct Stream {
  explicit Stream(int number) : cutter(number) {}
  UniqueFd pipe;
  LogLineCutter cutter;
};

// The job as its holder sees it. Belongs to one thread; Run is called once.
class Holder {
 public:
  Holder(HoldPlan plan, UniqueFd signals)
      : plan_(std::move(plan)),
        signals_(std::move(signals)),
        log_(absl::StrCat(plan_.job.directory, "/", kLogName), plan_.rotation,
             std::make_shared<LogLosses>()) {}

  int Run();

 private:
  absl::Status Start();
  void Serve();
  void Drain();
  void Read(Stream& stream);
  void Flush();
  void PassSignals();

  HoldPlan plan_;
  UniqueFd signals_;
  LogFile log_;
  std::optional<Process> process_;
  Stream out_{STDOUT_FILENO}, err_{STDERR_FILENO};
};

absl::Status Holder::Start() {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError("no pipe");
  }
  out_.pipe = UniqueFd(out[0]);
  err_.pipe = UniqueFd(err[0]);
  const UniqueFd out_end(out[1]), err_end(err[1]);
  for (const Stream* stream : {&out_, &err_}) ::fcntl(stream->pipe.get(), F_SETFL, O_NONBLOCK);
  Command command;
  command.argv = plan_.argv;
  command.program = kThisProgram;
  command.env = plan_.env;
  command.stdout_fd = out_end.get();
  command.stderr_fd = err_end.get();
  HLAUNCH_ASSIGN_OR_RETURN(Process process, Process::Spawn(std::move(command)));
  process_ = std::move(process);
  return absl::OkStatus();
}

int Holder::Run() {
  if (const absl::Status started = Start(); !started.ok()) {
    log_.Write(MakeLogLine(WallTime(WallMillis()), STDERR_FILENO, true,
                           absl::StrCat("hlaunch: ", started.message())));
    return kExitNoResources;
  }
  ::umask(kPrivateUmask);  // From here on, only log files are made.
  Serve();
  const int exit_code = process_->Reap().ShellCode();
  Drain();
  return exit_code;
}

void Holder::Serve() {
  while (true) {
    pollfd polls[] = {{process_->pidfd(), POLLIN, 0},
                      {signals_.get(), POLLIN, 0},
                      {out_.pipe.get(), POLLIN, 0},
                      {err_.pipe.get(), POLLIN, 0}};
    const bool waits = out_.cutter.waits() || err_.cutter.waits();
    if (::poll(polls, 4, waits ? kPatienceMs : -1) == 0) Flush();
    if (polls[0].revents != 0) return;
    if (polls[1].revents != 0) PassSignals();
    if (polls[2].revents != 0) Read(out_);
    if (polls[3].revents != 0) Read(err_);
  }
}

// Reads the last output of the job. What the pipes hold is read even if the time is over.
void Holder::Drain() {
  const Instant until = MonotonicClock().Now() + std::chrono::milliseconds(kPipesEndMs);
  bool over = false;
  while ((out_.pipe.valid() || err_.pipe.valid()) && !over) {
    over = MonotonicClock().Now() >= until;
    pollfd polls[] = {{out_.pipe.get(), POLLIN, 0}, {err_.pipe.get(), POLLIN, 0}};
    if (::poll(polls, 2, over ? 0 : kPipesEndMs) == 0) break;
    if (polls[0].revents != 0) Read(out_);
    if (polls[1].revents != 0) Read(err_);
  }
  Flush();
}

void Holder::Read(Stream& stream) {
  char bytes[64 << 10];
  const ssize_t n = ::read(stream.pipe.get(), bytes, sizeof(bytes));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) return stream.pipe.Close();
  log_.Write(
      stream.cutter.Take(WallTime(WallMillis()), absl::string_view(bytes, static_cast<size_t>(n))));
}

void Holder::Flush() {
  const std::string time = WallTime(WallMillis());
  log_.Write(absl::StrCat(out_.cutter.Flush(time), err_.cutter.Flush(time)));
}

void Holder::PassSignals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGCHLD) process_->Signal(signal);
  }
}

}  // namespace

int HoldJob(HoldPlan plan) {
  LeaveTerminal();
  // A shell makes processes in the background ignore these signals, but hlaunch stop must be heard.
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM}) ::signal(signal, SIG_DFL);
  BlockAgentSignals();  // All of them, even if the job takes only some.
  ::prctl(PR_SET_NAME, "hlaunch-holder", 0, 0, 0);
  const mode_t umask = ::umask(kPrivateUmask);
  plan.job.holder = PlaceOfThisProcess();
  const std::string directory = plan.job.directory;
  absl::StatusOr<UniqueFd> signals = AgentSignals();
  if (!signals.ok() || !KeepJob(plan.job).ok()) return kExitNoResources;
  Holder holder(std::move(plan), *std::move(signals));
  ::umask(umask);  // The job's own umask.
  const int exit_code = holder.Run();
  KeepEnding(directory, {exit_code, WallMillis()}).IgnoreError();
  return exit_code;
}

}  // namespace hlaunch
