// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/agent_stub.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/taken_signals.h"
#include "launcher/cli/hosts/start_message.h"
#include "launcher/remote/ssh/dial_back.h"
#include "launcher/remote/ssh/take_start.h"
#include "launcher/text/programs.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/exit_code.h"
#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

constexpr Duration kDialTime = seconds(10);
// The agent may take this long to end by itself, beyond the workers' own grace.
constexpr Duration kAgentEndTime = seconds(8);
constexpr Duration kCleanUpTime = seconds(10);
constexpr size_t kMaxWaiting = 16 << 20;  // Bytes of stdin that no worker has read yet.

void WriteOut(const std::string& line) {
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, line.data() + done, line.size() - done);
    if (n < 0 && errno != EINTR) return;  // The reader is gone; stdin's end tells that too.
    if (n > 0) done += static_cast<size_t>(n);
  }
}

// The part of the job on this host, and what arrives for it on stdin. Belongs to the main thread.
class Stub {
 public:
  Stub(StartMessage message, UniqueFd signals)
      : message_(std::move(message)), signals_(std::move(signals)) {}

  // Runs the part of the job. Returns the exit code.
  int Run();

 private:
  void Say(absl::string_view word, absl::string_view rest) {
    WriteOut(MakeAgentLine(message_.nonce, word, rest));
  }
  int Fail(absl::string_view kind, absl::string_view why) {
    Say(kWordError, absl::StrCat(kind, " ", why));
    return kExitNotStarted;
  }
  absl::Status Start(const std::string& endpoint);
  void Serve();
  void TakeStdin();
  void TakeFrame(const Frame& frame);
  void TakeSignal();
  void FeedChild();
  void Signal(int signal);
  void BeginEnd(const char* why, Duration grace);

  StartMessage message_;
  UniqueFd signals_;
  std::optional<Process> child_;
  UniqueFd input_;       // The child's stdin; invalid if it has none or it was closed.
  std::string frames_;   // The bytes of a frame that is not whole yet.
  std::string waiting_;  // Bytes for the child's stdin.
  bool stdin_open_ = true;
  bool detached_ = false;
  bool input_ends_ = false;  // Close `input_` once `waiting_` is written.
  std::optional<Instant> kill_at_;
};

int Stub::Run() {
  if (message_.umask >= 0) ::umask(static_cast<mode_t>(message_.umask));
  SetLimits(message_);
  Say(kWordStarted, absl::StrCat(WireVersion(), " ", ::getpid(), " ", OwnMachine()));
  if (message_.version != WireVersion()) return Fail("version", WireVersion());
  if (!message_.directory.empty() && ::chdir(message_.directory.c_str()) != 0) {
    return Fail("directory", absl::StrCat("no working directory ", message_.directory,
                                          " there: ", std::strerror(errno)));
  }
  const char* const connection = ::getenv("SSH_CONNECTION");
  const Dialled dialled = DialBack(
      OrderCandidates(message_.candidates, connection == nullptr ? "" : connection), kDialTime);
  if (dialled.place.empty()) {
    return Fail("reach", absl::StrCat("cannot reach this host: ", dialled.why));
  }
  Say(kWordHere, dialled.place);
  if (const absl::Status started = Start(dialled.place); !started.ok()) {
    LogError(started.message());
    Say(kWordEnd, absl::StrCat(kExitNotFound));
    return kExitNotFound;
  }
  Serve();
  const int exit_code = child_->Reap().ShellCode();
  KillAndReapDescendants(MonotonicClock(), MonotonicClock().Now() + kCleanUpTime);
  Say(kWordEnd, absl::StrCat(exit_code));
  return exit_code;
}

absl::Status Stub::Start(const std::string& endpoint) {
  Command command;
  command.program = kThisProgram;
  command.argv = {"hlaunch"};
  command.argv.insert(command.argv.end(), message_.options.begin(), message_.options.end());
  command.argv.insert(command.argv.end(), {"--rdzv-endpoint", endpoint});
  command.argv.insert(command.argv.end(), message_.script.begin(), message_.script.end());
  command.env = ChildEnvironment(message_);
  UniqueFd read_end;
  if (message_.takes_stdin) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat("no pipe: ", std::strerror(errno)));
    }
    read_end = UniqueFd(ends[0]);
    input_ = UniqueFd(ends[1]);
    ::fcntl(input_.get(), F_SETFL, O_NONBLOCK);
    command.stdin_fd = read_end.get();
  }
  HLAUNCH_ASSIGN_OR_RETURN(Process child, Process::Spawn(std::move(command)));
  child_ = std::move(child);
  return absl::OkStatus();
}

void Stub::Serve() {
  while (true) {
    pollfd polls[] = {{child_->pidfd(), POLLIN, 0},
                      {signals_.get(), POLLIN, 0},
                      {stdin_open_ ? STDIN_FILENO : -1,
                       static_cast<short>(waiting_.size() < kMaxWaiting ? POLLIN : 0), 0},
                      {waiting_.empty() ? -1 : input_.get(), POLLOUT, 0}};
    int ms = -1;
    if (kill_at_.has_value()) {
      const Duration left = std::max(*kill_at_ - MonotonicClock().Now(), Duration::zero());
      ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
    }
    const int ready = ::poll(polls, std::size(polls), ms);
    if (ready < 0 && errno != EINTR) {
      LogError(absl::StrCat("cannot watch the job: ", std::strerror(errno)));
      return child_->Signal(SIGKILL);
    }
    if (ready == 0 && kill_at_.has_value()) {
      child_->Signal(SIGKILL);
      kill_at_.reset();
      continue;
    }
    if (polls[0].revents != 0) return;
    if (polls[1].revents != 0) TakeSignal();
    if (polls[2].revents != 0) TakeStdin();
    if (polls[3].revents != 0) FeedChild();
  }
}

void Stub::TakeStdin() {
  char bytes[kMaxFrame];
  const ssize_t n = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (n <= 0) {
    stdin_open_ = false;
    if (detached_) return;  // The child hears of the end from the rendezvous.
    return BeginEnd("the terminal's end is gone", seconds(message_.grace_s) + kAgentEndTime);
  }
  frames_.append(bytes, static_cast<size_t>(n));
  const auto frames = TakeFrames(frames_);
  if (!frames.ok()) {
    stdin_open_ = false;
    return BeginEnd("standard input is garbled", seconds(message_.grace_s) + kAgentEndTime);
  }
  for (const Frame& frame : *frames) TakeFrame(frame);
}

void Stub::TakeFrame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kInput:
      if (frame.bytes.empty()) input_ends_ = true;
      if (input_.valid()) waiting_ += frame.bytes;
      return FeedChild();
    case FrameKind::kSignal:
      if (frame.bytes.size() == 1) Signal(static_cast<unsigned char>(frame.bytes[0]));
      return;
    case FrameKind::kDetach:
      detached_ = true;
      return;
    case FrameKind::kKill:
      return BeginEnd("killed from the terminal", Duration::zero());
  }
}

void Stub::FeedChild() {
  while (input_.valid() && !waiting_.empty()) {
    const ssize_t n = ::write(input_.get(), waiting_.data(), waiting_.size());
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0 && errno != EINTR) {  // The child has closed its stdin.
      input_.Close();
      waiting_.clear();
    }
    if (n > 0) waiting_.erase(0, static_cast<size_t>(n));
  }
  if (input_ends_) input_.Close();
}

void Stub::TakeSignal() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) Signal(static_cast<int>(info.ssi_signo));
  }
}

void Stub::Signal(int signal) {
  if (signal > 0 && signal < NSIG) child_->Signal(signal);
}

void Stub::BeginEnd(const char* why, Duration grace) {
  LogDebug(why);
  child_->Signal(SIGTERM);
  const Instant at = MonotonicClock().Now() + grace;
  kill_at_ = kill_at_.has_value() ? std::min(*kill_at_, at) : at;
}

}  // namespace

int RunAgentStub(int argc, char** argv) {
  if (argc != 3 || absl::string_view(argv[2]) != "--stdin") {
    LogError("`hlaunch agent --stdin` is for hlaunch's own use: see --hosts");
    return kExitUsage;
  }
  ::signal(SIGPIPE, SIG_IGN);
  BlockAgentSignals();
  BecomeSubreaper();
  absl::StatusOr<StartMessage> message = ReadStart();
  if (!message.ok()) {
    LogError(message.status().message());
    return kExitUsage;
  }
  ::prctl(PR_SET_DUMPABLE, 0);
  absl::StatusOr<UniqueFd> signals = AgentSignals();
  if (!signals.ok()) {
    LogError(signals.status().message());
    return kExitNoResources;
  }
  return Stub(*std::move(message), *std::move(signals)).Run();
}

}  // namespace hlaunch
