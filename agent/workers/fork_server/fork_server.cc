// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/workers/process/program_file.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

using Words = std::vector<std::string>;

// Longer than its own limit for a module that stands still.
constexpr Duration kSilenceLimit = std::chrono::seconds(90);
constexpr Duration kCheckLimit = std::chrono::seconds(15);  // To look at some thousand files.
constexpr Duration kForkLimit = std::chrono::seconds(5);    // The loop waits for a fork.
constexpr Duration kDyingTime = std::chrono::seconds(1);
constexpr size_t kMaxPrinted = 32 << 10;  // Fits into the pipe of any rank.
constexpr size_t kMaxMessage = 1 << 20;
constexpr int kPipeSize = 1 << 20;

absl::string_view KindWord(PythonCall::Kind kind) {
  switch (kind) {
    case PythonCall::Kind::kScript:
      return "script";
    case PythonCall::Kind::kModule:
      return "module";
    case PythonCall::Kind::kCode:
      break;
  }
  return "code";
}

bool IsScript(const std::string& path) {
  char start[2] = {};
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return ::read(file.get(), start, 2) != 2 || (start[0] == '#' && start[1] == '!');
}

// A message as the server reads it: its length, then words that end with a zero byte.
std::string Packed(const Words& words) {
  std::string text(4, '\0');
  for (const std::string& word : words) {
    text.append(word);
    text.push_back('\0');
  }
  const size_t size = text.size() - 4;
  for (size_t i = 0; i < 4; ++i) text[i] = static_cast<char>(size >> (8 * i) & 0xff);
  return text;
}

// Removes a whole message from the start of `text`; unset if there is none yet.
std::optional<Words> TakeMessage(std::string& text) {
  if (text.size() < 4) return std::nullopt;
  size_t size = 0;
  for (size_t i = 0; i < 4; ++i)
    size |= static_cast<size_t>(static_cast<uint8_t>(text[i])) << 8 * i;
  if (size > kMaxMessage) return Words{"?"};
  if (text.size() < 4 + size) return std::nullopt;
  Words words = absl::StrSplit(text.substr(4, size), '\0');
  words.pop_back();  // Behind the last zero byte.
  text.erase(0, 4 + size);
  return words;
}

bool AwaitFd(int fd, short events, Instant deadline) {
  pollfd poll = {fd, events, 0};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
    const int n = ::poll(&poll, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (n >= 0 || errno != EINTR) return n == 1;
  }
}

// Sends `text` with `fds`, which travel with its first byte.
bool Send(int socket, absl::string_view text, const std::vector<int>& fds, Instant deadline) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  bool first = !fds.empty();
  while (!text.empty()) {
    iovec part = {const_cast<char*>(text.data()), text.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (first) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    const ssize_t n = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      first = false;
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!AwaitFd(socket, POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

// What a module printed while it was imported: each rank prints it.
struct Printed {
  UniqueFd read_end;
  std::string text;
  size_t before_module = 0;

  void Drain() {
    char buffer[4096];
    while (text.size() <= kMaxPrinted) {
      const ssize_t n = ::read(read_end.get(), buffer, sizeof buffer);
      if (n <= 0) return;
      text.append(buffer, static_cast<size_t>(n));
    }
  }

  // Opens the pipe; returns its other end, which is invalid if there is none.
  UniqueFd Open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return {};
    read_end = UniqueFd(fds[0]);
    ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
    ::fcntl(fds[0], F_SETPIPE_SZ, kPipeSize);
    return UniqueFd(fds[1]);
  }
};

}  // namespace

struct ForkServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& the_loop, ForkServerPlan the_plan)
      : loop(the_loop), plan(std::move(the_plan)), socket(loop), exited(loop), silence(loop) {}

  // Errors: why it could not be started.
  absl::Status Start(const std::string& directory) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return absl::UnavailableError(std::strerror(errno));
    }
    socket.assign(ends[0]);
    const UniqueFd its(ends[1]);
    const UniqueFd out = printed[0].Open(), err = printed[1].Open();
    if (!out.valid() || !err.valid()) return absl::UnavailableError(std::strerror(errno));
    HLAUNCH_ASSIGN_OR_RETURN(program, FindProgram(plan.command.argv[0], plan.command.env,
                                                  plan.command.working_directory));
    // A script might not pass our variables on, and Python would run the user's script.
    if (IsScript(program)) {
      return absl::UnavailableError(absl::StrCat(
          program, " is a script that starts Python; PYTHON_EXEC can name Python itself"));
    }
    Command command = plan.command;
    std::string path = absl::StrCat(kEnvPythonPath, "=", directory);
    const std::string start = absl::StrCat(kEnvPythonPath, "=");
    const auto own = std::find_if(command.env.begin(), command.env.end(), [&](const auto& entry) {
      return absl::StartsWith(entry, start);
    });
    if (own == command.env.end()) {
      command.env.push_back(path);
    } else {
      *own = absl::StrCat(path, ":", own->substr(start.size()));
    }
    command.env.push_back(absl::StrCat(kEnvForkServer, "=1"));
    command.stdin_fd = -1;
    command.stdout_fd = out.get();
    command.stderr_fd = err.get();
    command.further_fd = its.get();
    HLAUNCH_ASSIGN_OR_RETURN(Process started, Process::Spawn(std::move(command)));
    process = std::move(started);
    UniqueFd pidfd(::fcntl(process->pidfd(), F_DUPFD_CLOEXEC, 0));
    if (!pidfd.valid()) return absl::UnavailableError(std::strerror(errno));
    exited.assign(pidfd.Release());
    exited.async_wait(asio::posix::descriptor_base::wait_read,
                      [self = shared_from_this()](const asio::error_code& error) {
                        if (!error) self->OnExit();
                      });
    const std::string modules =
        plan.preload.automatic ? "auto" : absl::StrJoin(plan.preload.modules, ",");
    Say({"plan", modules, std::string(KindWord(plan.call.kind)), plan.call.what,
         absl::StrJoin(plan.unshared, ",")},
        kSilenceLimit);
    return absl::OkStatus();
  }

  // Says something after which the server has news, each time before `limit` is over.
  void Say(const Words& words, Duration limit) {
    patience = limit;
    if (!Send(socket.native_handle(), Packed(words), {}, MonotonicClock().Now() + kForkLimit)) {
      return BreakSoon("it does not read");
    }
    HearLater();
  }

  void HearLater() {
    silence.expires_after(patience);
    silence.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->Break("it does not answer");
    });
    socket.async_wait(asio::posix::descriptor_base::wait_read,
                      [self = shared_from_this()](const asio::error_code& error) {
                        if (!error) self->Hear();
                      });
  }

  void Hear() {
    if (broken()) return;
    if (!Receive()) return Break(HowItEnded());
    while (const std::optional<Words> news = TakeMessage(received)) {
      if (Take(*news)) return;
    }
    HearLater();
  }

  // Reads what there is; returns false at the end.
  bool Receive() {
    char buffer[4096];
    const ssize_t n = ::recv(socket.native_handle(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) received.append(buffer, static_cast<size_t>(n));
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  }

  // Returns true if the server is settled.
  bool Take(const Words& news) {
    const std::string word = news.empty() ? "" : news[0];
    if (word == "rank" || word == "no") return false;  // Nobody waits for it any more.
    for (Printed& stream : printed) stream.Drain();
    if (word == "at" && news.size() == 2) {
      for (Printed& stream : printed) {
        if (news[1] != module) stream.before_module = stream.text.size();
      }
      module = news[1];
      return false;
    }
    if (word == "skip" && news.size() == 3) {
      for (Printed& stream : printed) {
        if (news[1] == module) stream.text.resize(stream.before_module);
      }
      LogInfo(absl::StrCat("ranks import ", news[1], " themselves: ", news[2]));
      return false;
    }
    if (word == "ready" && news.size() == 2) {
      const bool much = std::any_of(printed.begin(), printed.end(), [](const Printed& stream) {
        return stream.text.size() > kMaxPrinted;
      });
      if (news[1].empty()) {
        Break("there is nothing to preload", End::kUseless);
      } else if (much) {
        Break("what is preloaded prints too much", End::kUseless);
      } else {
        LogDebug(absl::StrCat("preloaded ", news[1], "; ranks are forked from process ",
                              process ? process->pid() : 0));
        BeReady();
      }
    } else if (word == "same") {
      BeReady();
    } else if (word == "changed" && news.size() == 2) {
      Break(absl::StrCat(news[1], " has changed"), End::kChanged);
    } else {
      Break("it answers nonsense");
    }
    return true;
  }

  void BeReady() {
    silence.cancel();
    is_ready = true;
    Settle();
  }

  void Settle() {
    if (auto tell = std::exchange(on_settled, nullptr)) tell();
  }

  void BreakSoon(std::string why, End how = End::kLost) {
    asio::post(loop,
               [self = shared_from_this(), why = std::move(why), how] { self->Break(why, how); });
  }

  // The server does not serve any more.
  void Break(const std::string& why, End how = End::kLost) {
    if (!broken()) {
      end = how;
      why_not = why;
      Log(how == End::kChanged ? LogLevel::kDebug : LogLevel::kInfo,
          absl::StrCat("fork server: ", why,
                       how == End::kChanged ? "; the modules are imported anew"
                                            : "; ranks start in the normal way"));
    }
    Kill();
    Settle();
  }

  // With the last line that it wrote to stderr.
  std::string HowItEnded() {
    printed[1].Drain();
    const absl::string_view text = absl::StripAsciiWhitespace(printed[1].text);
    const absl::string_view last = text.substr(text.rfind('\n') + 1);
    return absl::StrCat("it has ended", last.empty() ? "" : ": ", last);
  }

  bool broken() const { return end != End::kNone; }

  void Kill() {
    is_ready = false;
    silence.cancel();
    if (socket.is_open()) socket.close();
    if (process && process->pid() != 0) process->SignalGroup(SIGKILL);
  }

  void OnExit() {
    if (process && process->pid() != 0) process->Reap();
    Break(HowItEnded());
    if (on_reaped) on_reaped();
  }

  // Kills and reaps.
  void Finish() {
    on_settled = nullptr;
    if (!broken()) end = End::kUseless;
    Kill();
    exited.close();
    if (!process || process->pid() == 0) return;
    const Instant deadline = MonotonicClock().Now() + kDyingTime;
    const pid_t group = process->pid();
    // One that the kernel holds is left to the end of the agent.
    if (!AwaitFd(process->pidfd(), POLLIN, deadline)) return;
    process->Reap();
    // The server is a child of the process that started first, and now of this one.
    while (::waitpid(-group, nullptr, WNOHANG) >= 0 && MonotonicClock().Now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Waits for the answer to the fork with this number; those for which nobody waited come first.
  //
  // Errors: Unavailable.
  absl::StatusOr<Words> Answer(const std::string& number) {
    const Instant deadline = MonotonicClock().Now() + kForkLimit;
    while (!broken()) {
      if (const std::optional<Words> answer = TakeMessage(received)) {
        if (answer->size() == 3 && (*answer)[1] == number) return *answer;
        continue;
      }
      if (!AwaitFd(socket.native_handle(), POLLIN, deadline)) {
        Break("it does not answer");
      } else if (!Receive()) {
        Break("it has ended");
      }
    }
    return absl::UnavailableError(why_not);
  }

  // Writes what the modules printed into a rank's own pipes, which are empty still.
  void Print(int out, int err) const {
    const int fds[] = {out, err};
    for (size_t i = 0; i < 2; ++i) {
      const std::string& text = printed[i].text;
      if (!text.empty() && ::write(fds[i], text.data(), text.size()) < 0) {
        LogDebug(absl::StrCat("what modules printed is lost: ", std::strerror(errno)));
      }
    }
  }

  asio::io_context& loop;
  const ForkServerPlan plan;
  std::string program;  // The path of Python, for `_`.
  asio::posix::stream_descriptor socket;
  asio::posix::stream_descriptor exited;
  asio::steady_timer silence;
  std::optional<Process> process;
  std::array<Printed, 2> printed;  // stdout, stderr.
  std::string module;              // What it imports.
  std::string received;
  int forks = 0;
  Duration patience{};
  std::function<void()> on_settled;
  std::function<void()> on_reaped;
  bool is_ready = false;
  End end = End::kNone;
  std::string why_not = "it is not ready yet";
};

struct ForkedRank::State {
  std::shared_ptr<ForkServer::State> server;
  std::string number;
  UniqueFd go;  // The rank ends if it is closed before it was written to.
  UniqueFd out, err;
};

ForkedRank::ForkedRank(std::unique_ptr<State> state) : state_(std::move(state)) {}
ForkedRank::ForkedRank(ForkedRank&&) noexcept = default;
ForkedRank::~ForkedRank() = default;

absl::StatusOr<Process> ForkedRank::Await() {
  const std::unique_ptr<State> state = std::move(state_);
  HLAUNCH_ASSIGN_OR_RETURN(const Words answer, state->server->Answer(state->number));
  pid_t pid = 0;
  if (answer[0] != "rank" || !absl::SimpleAtoi(answer[2], &pid)) {
    return absl::UnavailableError(answer[2]);
  }
  HLAUNCH_ASSIGN_OR_RETURN(Process process, Process::Adopt(pid));
  state->server->Print(state->out.get(), state->err.get());
  if (::write(state->go.get(), "g", 1) == 1) return process;
  return absl::UnavailableError("the rank has ended");
}

ForkServer::ForkServer(asio::io_context& loop, ForkServerPlan plan, const std::string& directory,
                       Events events)
    : state_(std::make_shared<State>(loop, std::move(plan))) {
  state_->on_settled = std::move(events.on_settled);
  state_->on_reaped = std::move(events.on_reaped);
  if (const absl::Status started = state_->Start(directory); !started.ok()) {
    state_->BreakSoon(std::string(started.message()), End::kUseless);
  }
}

ForkServer::~ForkServer() { state_->Finish(); }

void ForkServer::Renew(std::function<void()> on_settled) {
  state_->on_settled = std::move(on_settled);
  if (state_->broken()) {
    return asio::post(state_->loop, [state = state_] { state->Settle(); });
  }
  state_->is_ready = false;
  state_->Say({"check"}, kCheckLimit);
}

void ForkServer::Hush() { state_->on_settled = nullptr; }
bool ForkServer::ready() const { return state_->is_ready; }
ForkServer::End ForkServer::end() const { return state_->end; }
const ForkServerPlan& ForkServer::plan() const { return state_->plan; }
pid_t ForkServer::pid() const { return state_->process ? state_->process->pid() : 0; }

absl::StatusOr<ForkedRank> ForkServer::Fork(const Command& command) {
  if (!state_->is_ready) return absl::UnavailableError(state_->why_not);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return absl::UnavailableError(std::strerror(errno));
  const UniqueFd its(ends[0]);
  auto rank = std::make_unique<ForkedRank::State>();
  rank->server = state_;
  rank->number = absl::StrCat(++state_->forks);
  rank->go = UniqueFd(ends[1]);
  rank->out = UniqueFd(::fcntl(command.stdout_fd, F_DUPFD_CLOEXEC, 0));
  rank->err = UniqueFd(::fcntl(command.stderr_fd, F_DUPFD_CLOEXEC, 0));
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const bool no_input = command.stdin_fd < 0;
  std::vector<int> fds = {no_input ? null.get() : command.stdin_fd, command.stdout_fd,
                          command.stderr_fd};
  if (command.further_fd >= 0) fds.push_back(command.further_fd);
  fds.push_back(its.get());
  Words words = {"fork", rank->number, absl::StrCat(::getpid()), absl::StrJoin(command.cpus, ",")};
  for (const std::string& entry : command.env) {
    if (!absl::StartsWith(entry, "_=")) words.push_back(entry);
  }
  words.push_back(absl::StrCat("_=", state_->program));
  if (!Send(state_->socket.native_handle(), Packed(words), fds,
            MonotonicClock().Now() + kForkLimit)) {
    state_->Break("it does not answer");
    return absl::UnavailableError(state_->why_not);
  }
  return ForkedRank(std::move(rank));
}

}  // namespace hlaunch
