// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/fork_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/workers/fork_server/fork_messages.h"
#include "agent/workers/fork_server/host_memory.h"
#include "agent/workers/fork_server/printed_imports.h"
#include "agent/workers/fork_server/server_talk.h"
#include "agent/workers/fork_server/waiting_forks.h"
#include "agent/workers/process/exit_notice.h"
#include "agent/workers/process/program_file.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/post.hpp"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

// Longer than its own limit for a module that stands still.
constexpr Duration kSilenceLimit = std::chrono::seconds(90);
constexpr Duration kCheckLimit = std::chrono::seconds(15);  // To look at some thousand files.
constexpr Duration kForkLimit = std::chrono::seconds(15);   // To fork for all ranks.
constexpr Duration kDyingTime = std::chrono::seconds(1);
constexpr int kSendBuffer = 1 << 20;  // For a rank's environment.

bool IsScript(const std::string& path) {
  char start[2] = {};
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return ::read(file.get(), start, 2) != 2 || (start[0] == '#' && start[1] == '!');
}

// `env` with `directory` as the first of PYTHONPATH.
std::vector<std::string> WithPythonPath(std::vector<std::string> env,
                                        const std::string& directory) {
  const std::string start = absl::StrCat(kEnvPythonPath, "=");
  const auto own = std::find_if(env.begin(), env.end(), [&](const std::string& entry) {
    return absl::StartsWith(entry, start);
  });
  if (own == env.end()) {
    env.push_back(absl::StrCat(start, directory));
  } else {
    *own = absl::StrCat(start, directory, ":", own->substr(start.size()));
  }
  return env;
}

}  // namespace

struct ForkServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& the_loop, ForkServerPlan the_plan)
      : loop(the_loop),
        plan(std::move(the_plan)),
        talk(std::make_shared<ServerTalk>(loop)),
        exited(loop),
        forks(loop, [this] {
          if (on_reaped) on_reaped();
        }) {}

  // Errors: why it could not be started.
  absl::Status Start(const std::string& directory) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return absl::UnavailableError(std::strerror(errno));
    }
    talk->Open(UniqueFd(ends[0]), EventsOfTalk());
    const UniqueFd its(ends[1]);
    const auto [out, err] = printed.Open();
    if (!out.valid() || !err.valid()) return absl::UnavailableError(std::strerror(errno));
    HLAUNCH_ASSIGN_OR_RETURN(program, FindProgram(plan.command.argv[0], plan.command.env,
                                                  plan.command.working_directory));
    // A script might not pass our variables on, and Python would run the user's script.
    if (IsScript(program)) {
      return absl::UnavailableError(absl::StrCat(
          program, " is a script that starts Python; PYTHON_EXEC can name Python itself"));
    }
    Command command = plan.command;
    command.env = WithPythonPath(std::move(command.env), directory);
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
    talk->Say({"plan", NamesOf(plan.preload), KindOf(plan.call), plan.call.what,
               absl::StrJoin(plan.unshared, ",")},
              kSilenceLimit);
    return absl::OkStatus();
  }

  // It lives as long as one of these runs, whatever they lead to.
  ServerTalk::Events EventsOfTalk() {
    const auto guarded = [weak = weak_from_this()](auto call) {
      return [weak, call](const auto&... what) {
        if (const auto self = weak.lock()) call(*self, what...);
      };
    };
    return {guarded([](State& self, const ForkMessage& news) { self.Take(news); }),
            guarded([](State& self) { self.Break(self.HowItEnded()); }),
            guarded([](State& self, const std::string& why) { self.Break(why); })};
  }

  void Take(const ForkMessage& news) {
    const std::string word = news.empty() ? "" : news[0];
    printed.Drain();
    pid_t pid = 0;
    if (word == "at" && news.size() == 3 && absl::SimpleAtoi(news[2], &pid)) {
      Meet(pid);
      if (!import_began) import_began = MonotonicClock().Now();
      printed.Begin(news[1]);
    } else if (word == "skip" && news.size() == 3) {
      printed.Forget(news[1]);
      LogInfo(absl::StrCat("ranks import ", news[1], " themselves: ", news[2]));
    } else if (word == "ready" && news.size() == 3 && absl::SimpleAtoi(news[2], &pid)) {
      talk->Answered();
      Meet(pid);
      HasImported(news[1]);
    } else if (word == "same") {
      talk->Answered();
      checking = false;
      HaveForks();
    } else if (word == "changed" && news.size() == 2) {
      Break(absl::StrCat(news[1], " has changed"), End::kChanged);
    } else if (word == "forked" && news.size() == 3) {
      talk->Answered();
      TakeForks(news[1], news[2]);
    } else {
      Break("it answers nonsense");
    }
  }

  void HasImported(const std::string& modules) {
    if (modules.empty()) return Break("there is nothing to preload", End::kUseless);
    if (printed.too_much()) return Break("what is preloaded prints too much", End::kUseless);
    const Instant now = MonotonicClock().Now();
    import_time = now - import_began.value_or(now);
    LogDebug(absl::StrFormat("preloaded %s in %.1f s; ranks are forked from process %d", modules,
                             InSeconds(*import_time), process ? process->pid() : 0));
    HaveForks();
  }

  // A process of its group that is no child of ours yet.
  void Meet(pid_t pid) {
    if (process && pid != process->pid() && kin.count(pid) == 0) kin.emplace(pid, OpenPidfd(pid));
  }

  // Sees to a fork for each rank, and is ready then.
  void HaveForks() {
    if (unborn.empty() && !AskForForks()) BeReady();
  }

  // Returns false if no fork is missing, or none can be asked for.
  bool AskForForks() {
    const auto ranks = static_cast<size_t>(plan.ranks);
    if (forks.count() >= ranks) return false;
    std::vector<UniqueFd> its;
    std::vector<int> fds;
    for (size_t i = std::min(ranks - forks.count(), kMostSentDescriptors); i > 0; --i) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) break;
      ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
      unborn.emplace_back(ends[0]);
      its.emplace_back(ends[1]);
      fds.push_back(ends[1]);
    }
    if (fds.empty()) return false;
    talk->Say({"fork"}, kForkLimit, fds);
    return true;
  }

  // `born` names the forks: for each, the number of its socket, and its pid.
  void TakeForks(const std::string& why_not_all, absl::string_view born) {
    std::vector<UniqueFd> sockets = std::exchange(unborn, {});
    size_t taken = 0;
    for (const absl::string_view one : absl::StrSplit(born, ' ', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(one, ':');
      size_t index = 0;
      pid_t pid = 0;
      if (!absl::SimpleAtoi(parts.first, &index) || !absl::SimpleAtoi(parts.second, &pid) ||
          index >= sockets.size() || !sockets[index].valid()) {
        return Break("it answers nonsense");
      }
      const absl::Status added = forks.Add(pid, std::move(sockets[index]));
      if (absl::IsNotFound(added)) continue;  // It was killed at once.
      if (!added.ok()) return Break(std::string(added.message()), End::kUseless);
      ++taken;
    }
    if (!why_not_all.empty()) {
      LogInfo(absl::StrCat("fork server: ", why_not_all, "; ranks start in the normal way"));
    }
    if (checking) return;  // Its answer is on the way.
    if (taken < sockets.size()) return BeReady();
    HaveForks();
  }

  void BeReady() {
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
    printed.Drain();
    const absl::string_view text = absl::StripAsciiWhitespace(printed.err());
    const absl::string_view last = text.substr(text.rfind('\n') + 1);
    return absl::StrCat("it has ended", last.empty() ? "" : ": ", last);
  }

  bool broken() const { return end != End::kNone; }

  void Kill() {
    is_ready = false;
    talk->Close();
    if (process && process->pid() != 0) process->SignalGroup(SIGKILL);
    unborn.clear();
    forks.Kill();
  }

  void OnExit() {
    if (process && process->pid() != 0) process->Reap();
    Break(HowItEnded());
    if (on_reaped) on_reaped();
  }

  // Kills and reaps. Those that the kernel holds are left to the end of the agent.
  void Finish() {
    on_settled = on_reaped = nullptr;
    if (!broken()) end = End::kUseless;
    Kill();
    exited.close();
    const Instant deadline = MonotonicClock().Now() + kDyingTime;
    forks.AwaitEnds(deadline);
    if (!process || process->pid() == 0) return;
    const pid_t group = process->pid();
    if (!AwaitExitNotice(process->pidfd(), deadline)) return;
    process->Reap();
    // The others are children of the process that was started, and now of this one.
    for (const auto& [pid, pidfd] : kin) {
      if (pidfd.valid()) (void)AwaitExitNotice(pidfd.get(), deadline);
    }
    while (::waitpid(-group, nullptr, WNOHANG) > 0) {
    }
  }

  asio::io_context& loop;
  const ForkServerPlan plan;
  std::string program;  // The path of Python, for `_`.
  const std::shared_ptr<ServerTalk> talk;
  asio::posix::stream_descriptor exited;
  std::optional<Process> process;
  PrintedImports printed;
  WaitingForks forks;
  std::vector<UniqueFd> unborn;   // Our ends of the sockets of forks that were asked for.
  std::map<pid_t, UniqueFd> kin;  // Pidfds of its processes that are no children of ours.
  std::optional<Instant> import_began;
  std::optional<Duration> import_time;
  bool checking = false;  // It is to say whether the files are the same.
  std::function<void()> on_settled;
  std::function<void()> on_reaped;
  bool is_ready = false;
  End end = End::kNone;
  std::string why_not = "it is not ready yet";
};

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
  state_->checking = true;
  state_->talk->Say({"check"}, kCheckLimit);
}

void ForkServer::MakeSpares() {
  if (!state_->is_ready || !state_->unborn.empty()) return;
  const int missing = state_->plan.ranks - static_cast<int>(state_->forks.count());
  if (const std::string why = WhyNoSpares(missing, ReadMemory()); !why.empty()) {
    return LogDebug(absl::StrCat("no forks wait for the next round: ", why));
  }
  state_->AskForForks();
}

void ForkServer::Hush() { state_->on_settled = nullptr; }
bool ForkServer::ready() const { return state_->is_ready; }
ForkServer::End ForkServer::end() const { return state_->end; }
const ForkServerPlan& ForkServer::plan() const { return state_->plan; }
pid_t ForkServer::pid() const { return state_->process ? state_->process->pid() : 0; }

std::optional<Duration> ForkServer::import_time() const { return state_->import_time; }

std::vector<pid_t> ForkServer::pids() const {
  std::vector<pid_t> pids = state_->forks.pids();
  if (pid() != 0) pids.push_back(pid());
  return pids;
}

absl::StatusOr<Process> ForkServer::Fork(const Command& command) {
  if (!state_->is_ready) return absl::UnavailableError(state_->why_not);
  return state_->forks.Become(command, state_->program,
                              {state_->printed.out(), state_->printed.err()});
}

}  // namespace hlaunch
