// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/host_start.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "asio/buffer.hpp"
#include "asio/error.hpp"
#include "asio/post.hpp"
#include "launcher/cli/hosts/end_of_job.h"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"

namespace hlaunch {
namespace {

constexpr int kMostDropped = 3;
constexpr size_t kKeptLines = 20;
constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kLongestLine = 64 << 10;  // A longer line is passed on in parts.
// A line whose end does not come for this time is shown, as a question that waits for its answer.
// The host's own agent has waited before.
constexpr Duration kUnfinished = std::chrono::milliseconds(200);
// A process that the starter left behind (ControlPersist) may hold its pipes after its exit.
constexpr Duration kPipesEnd = std::chrono::milliseconds(500);

std::chrono::milliseconds Jitter() {
  std::random_device random;
  return std::chrono::milliseconds(200 + random() % 1800);
}

}  // namespace

HostStart::HostStart(asio::io_context& loop, const Starter& starter, StartPatience& patience,
                     HostPlan plan, Events events)
    : loop_(loop),
      starter_(starter),
      patience_(patience),
      plan_(std::move(plan)),
      events_(std::move(events)),
      pidfd_(loop),
      input_(loop),
      out_(loop),
      err_(loop),
      timer_(loop),
      unfinished_timer_(loop) {
  err_.fd = STDERR_FILENO;
}

void HostStart::Enter(HostState state) {
  state_ = state;
  entered_ = MonotonicClock().Now();
  patience_.Progress(entered_);
  events_.changed(*this);
}

void HostStart::Start() {
  state_ = HostState::kConnecting;
  Spawn();
}

void HostStart::Spawn() {
  begun_ = entered_ = MonotonicClock().Now();
  patience_.Progress(begun_);
  last_lines_.clear();
  failed_ = FailedStart();
  failed_.host = plan_.host.Login();
  failed_.starter = plan_.own && starter_.agent.empty() ? "hlaunch" : starter_.Name();
  failed_.agent_path =
      tried_path_ ? absl::StrCat(first_program_, " or in the PATH") : plan_.program;
  failed_.own_version = plan_.message.version;
  failed_.pushed = pushes_;
  exited_ = false;
  int in[2], out[2], err[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) {
    verdict_ = {absl::StrCat("no pipe: ", std::strerror(errno)), "raise ulimit -n", false, false};
    return Enter(HostState::kFailed);
  }
  const UniqueFd in_end(in[0]), out_end(out[1]), err_end(err[1]);
  input_.assign(in[1]);
  out_.pipe.assign(out[0]);
  err_.pipe.assign(err[0]);
  out_.open = err_.open = true;
  out_.line.clear();
  err_.line.clear();
  out_.shown = err_.shown = 0;
  Command command;
  command.argv = pushes_ ? PushCommand(starter_, plan_.host, plan_.own)
                         : StartCommand(starter_, plan_.host, plan_.own, plan_.program);
  command.env = StarterEnvironment(starter_, Environment::OfThisProcess());
  command.stdin_fd = in_end.get();
  command.stdout_fd = out_end.get();
  command.stderr_fd = err_end.get();
  absl::StatusOr<Process> process = Process::Spawn(std::move(command));
  if (!process.ok()) {
    input_.close();
    out_.pipe.close();
    err_.pipe.close();
    verdict_ = {std::string(process.status().message()),
                absl::IsNotFound(process.status()) ? "install it here, or name another one with "
                                                     "--launch-agent"
                                                   : "",
                false, false};
    return Enter(HostState::kFailed);
  }
  process_ = std::move(process).value();
  AwaitExit();
  Read(out_);
  Read(err_);
  outgoing_ = EncodeStart(plan_.message);
  pushed_ = 0;
  Write();
  AwaitAnswer();
}

void HostStart::Read(Stream& stream) {
  stream.buffer.resize(kReadBytes);
  stream.held = false;
  stream.pipe.async_read_some(
      asio::buffer(stream.buffer),
      [self = shared_from_this(), &stream](const asio::error_code& error, size_t size) {
        if (error == asio::error::operation_aborted) return;
        if (error) {
          if (!stream.line.empty()) self->TakeLine(stream, std::exchange(stream.line, ""));
          stream.open = false;
          stream.pipe.close();
          return self->FinishWhenRead();
        }
        self->TakeBytes(stream, absl::string_view(stream.buffer.data(), size));
        if (!stream.pipe.is_open()) return;
        if (self->events_.output_full()) {
          stream.held = true;
        } else {
          self->Read(stream);
        }
      });
}

void HostStart::Resume() {
  for (Stream* stream : {&out_, &err_}) {
    if (stream->held && stream->pipe.is_open()) Read(*stream);
  }
}

void HostStart::TakeBytes(Stream& stream, absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t size = end == absl::string_view::npos ? bytes.size() : end + 1;
    absl::StrAppend(&stream.line, bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (end != absl::string_view::npos || stream.line.size() >= kLongestLine) {
      TakeLine(stream, std::exchange(stream.line, ""));
    }
  }
  if (stream.line.empty() || state_ != HostState::kHere) return;
  unfinished_timer_.expires_after(kUnfinished);
  unfinished_timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->ShowUnfinished();
  });
}

void HostStart::ShowUnfinished() {
  for (Stream* stream : {&out_, &err_}) {
    const bool agents = absl::StrContains(stream->line, kAgentMagic);  // It comes whole.
    if (state_ != HostState::kHere || agents || stream->line.size() <= stream->shown) continue;
    std::string rest = stream->line.substr(stream->shown);
    stream->shown = stream->line.size();
    events_.output(*this, stream->fd, std::move(rest));
  }
}

void HostStart::ShowAgain(int fd) { (fd == STDERR_FILENO ? err_ : out_).shown = 0; }

// Shows what was not shown yet of the line, and ends it.
void HostStart::Show(Stream& stream, absl::string_view line) {
  std::string rest(line.substr(std::min(std::exchange(stream.shown, 0), line.size())));
  if (rest.empty() || rest.back() != '\n') rest.push_back('\n');  // Other lines follow.
  events_.output(*this, stream.fd, std::move(rest));
}

void HostStart::TakeLine(Stream& stream, std::string line) {
  AgentLine found;
  if (&stream == &out_ && ReadAgentLine(line, plan_.message.nonce, &found)) {
    while (!found.rest.empty() && (found.rest.back() == '\n' || found.rest.back() == '\r')) {
      found.rest.pop_back();
    }
    if (!found.before.empty() && state_ == HostState::kHere) Show(stream, found.before);
    return TakeAgentLine(found);
  }
  if (state_ == HostState::kHere) {
    if (stream.shown == 0 && RepeatsTheEnd(starter_.Name(), line)) {
      repeated_end_ = std::move(line);
      return;
    }
    if (stream.fd == STDERR_FILENO) last_words_ = line;
    return Show(stream, line);
  }
  last_lines_.push_back(std::move(line));  // Shown if the start fails.
  if (last_lines_.size() > kKeptLines) last_lines_.pop_front();
}

void HostStart::TakeAgentLine(const AgentLine& found) {
  if (found.word == kWordStarted && state_ == HostState::kConnecting) {
    failed_.started = true;
    const std::vector<std::string> words = absl::StrSplit(found.rest, ' ');
    const std::string& version = words.front();
    machine_ = words.size() > 2 ? words[2] : "";
    if (version != plan_.message.version) failed_.other_version = version;
    Enter(HostState::kStarted);
  } else if (found.word == kWordHere && state_ == HostState::kStarted) {
    timer_.cancel();
    reached_ = found.rest;
    Enter(HostState::kHere);
  } else if (found.word == kWordError) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(found.rest, absl::MaxSplits(' ', 1));
    failed_.error_kind = parts.first;
    failed_.error = parts.second;
  } else if (found.word == kWordEnd) {
    int code = 0;
    if (absl::SimpleAtoi(found.rest, &code)) exit_code_ = code;
  }
}

void HostStart::Send(FrameKind kind, absl::string_view bytes) {
  if (!input_.is_open() || over()) return;
  outgoing_ += EncodeFrame(kind, bytes);
  Write();
}

absl::string_view HostStart::NextBytes() const {
  if (pushes_ && pushed_ < starter_.pushed->bytes.size()) {
    return absl::string_view(starter_.pushed->bytes).substr(pushed_, kMaxFrame);
  }
  return absl::string_view(outgoing_).substr(0, kMaxFrame);
}

void HostStart::Written(size_t size) {
  if (pushes_ && pushed_ < starter_.pushed->bytes.size()) {
    pushed_ += size;
    patience_.Progress(MonotonicClock().Now());
    return;
  }
  outgoing_.erase(0, size);
  if (outgoing_.empty()) events_.sent(*this);
}

void HostStart::Write() {
  if (writing_ || outgoing_.empty() || !input_.is_open()) return;
  writing_ = true;
  auto bytes = std::make_shared<std::string>(NextBytes());
  input_.async_write_some(asio::buffer(*bytes), [self = shared_from_this(), bytes](
                                                    const asio::error_code& error, size_t size) {
    self->writing_ = false;
    if (error == asio::error::operation_aborted) return;
    if (error) {  // The starter's exit tells more.
      self->input_.close();
      return;
    }
    self->Written(size);
    self->Write();
  });
}

void HostStart::AwaitExit() {
  pidfd_.assign(::fcntl(process_->pidfd(), F_DUPFD_CLOEXEC, 0));
  pidfd_.async_wait(asio::posix::descriptor_base::wait_read,
                    [self = shared_from_this()](const asio::error_code& error) {
                      if (!error) self->Exited();
                    });
}

void HostStart::Exited() {
  const ExitStatus status = process_->Reap();
  process_.reset();
  pidfd_.close();
  input_.close();
  exited_ = true;
  failed_.signal = status.signal;
  if (status.signal == 0) failed_.exit_code = status.exit_code;
  FinishWhenRead();
  if (over() || !exited_) return;
  timer_.expires_after(kPipesEnd);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && self->exited_ && !self->over()) self->Finish();
  });
}

void HostStart::FinishWhenRead() {
  if (exited_ && !out_.open && !err_.open && !over()) Finish();
}

// Called when nothing more comes from this starter.
void HostStart::Finish() {
  timer_.cancel();
  unfinished_timer_.cancel();
  out_.pipe.close();
  err_.pipe.close();
  outgoing_.clear();
  if (state_ == HostState::kHere) {
    if (!exit_code_.has_value() && !repeated_end_.empty()) {
      last_words_ = repeated_end_;
      Show(err_, std::exchange(repeated_end_, ""));
    }
    return Enter(HostState::kEnded);
  }
  FailOrTryAgain();
}

void HostStart::FailOrTryAgain() {
  failed_.last_lines.assign(last_lines_.begin(), last_lines_.end());
  verdict_ = ExplainStart(failed_);
  const bool again = verdict_.try_again && dropped_ < kMostDropped;
  const bool path = verdict_.try_the_path && !tried_path_;
  const bool push = starter_.pushed != nullptr && !pushes_ && verdict_.needs_program;
  if (stopped_ || (!again && !path && !push)) return Enter(HostState::kFailed);
  state_ = HostState::kConnecting;
  exited_ = false;
  if (path || push) {
    if (path) {
      tried_path_ = true;
      first_program_ = std::exchange(plan_.program, "hlaunch");
    } else {
      pushes_ = true;
    }
    // Spawns only after the handlers of the closed pipes have run.
    return asio::post(loop_, [self = shared_from_this()] { self->Spawn(); });
  }
  ++dropped_;
  timer_.expires_after(Jitter());
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error) return;
    if (self->stopped_) return self->Enter(HostState::kFailed);
    self->Spawn();
  });
}

void HostStart::AwaitAnswer() {
  timer_.expires_at(patience_.ends());
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error) return;
    const bool over = MonotonicClock().Now() >= self->patience_.ends();
    over ? self->TimeIsUp() : self->AwaitAnswer();
  });
}

void HostStart::TimeIsUp() {
  failed_.timed_out = true;
  failed_.waited_s = static_cast<int>(
      std::chrono::round<std::chrono::seconds>(MonotonicClock().Now() - entered_).count());
  Kill();
}

void HostStart::Stop(int signal) {
  if (over()) return;
  stopped_ = true;
  if (state_ == HostState::kWaiting) return Enter(HostState::kFailed);
  if (state_ == HostState::kHere) {
    return Send(FrameKind::kSignal, std::string(1, static_cast<char>(signal)));
  }
  if (process_.has_value()) return Kill();
  timer_.cancel();  // It was waiting for its retry.
  Enter(HostState::kFailed);
}

void HostStart::Kill() {
  stopped_ = stopped_ || state_ == HostState::kHere;
  if (process_.has_value()) process_->SignalGroup(SIGKILL);
}

}  // namespace hlaunch
