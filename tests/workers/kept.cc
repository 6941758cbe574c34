// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// A small agent under a real keeper, for tests. It carries out its arguments in order, then prints
// every signal it gets. SIGTERM ends it with code 3, the keeper's death with code 4.
//
//   kept [exit N] [abort] [late] [threads N] [run SHELL-COMMAND]… [death report FILE] [directory
//   DIR]
//        [exec]
//        [on SIGNAL stop|spin]   stands still from that signal on, half a second before its
//                                workers must end

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/workers/process/descendants.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/keeper.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::vector<std::string> Environment() {
  std::vector<std::string> env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.push_back(*entry);
  return env;
}

// The signals whose numbers KEPT_SIGNALS lists, as "15,10"; the default if it is empty.
SignalNumbers Named() {
  SignalNumbers named;
  const char* words = std::getenv("KEPT_SIGNALS");
  for (absl::string_view word : absl::StrSplit(words != nullptr ? words : "", ',')) {
    int signal = 0;
    if (absl::SimpleAtoi(word, &signal)) named.push_back(signal);
  }
  return named;
}

// What KEPT_BEGIN_MS says; else the usual.
Duration BeginTime() {
  const char* text = std::getenv("KEPT_BEGIN_MS");
  int ms = 0;
  return text != nullptr && absl::SimpleAtoi(text, &ms) ? std::chrono::milliseconds(ms)
                                                        : kBeginTime;
}

// The agent's reaction to one of the signals.
struct Standstill {
  int signal = 0;
  bool spins = false;
};

void StandStill(const KeeperLink& link, const Standstill& how) {
  link.ShowLife(MonotonicClock().Now() + std::chrono::milliseconds(500));
  if (!how.spins) ::raise(SIGSTOP);
  for (volatile uint64_t turns = 0; how.spins;) turns = turns + 1;
}

// Never begins, as if something that it needs did not come.
int BeLate() {
  Say(absl::StrCat("agent ", ::getpid()));
  while (true) ::pause();
}

int ServeSignals(const KeeperLink& link, const Standstill& standstill) {
  link.SayBegun();
  const UniqueFd signals = AgentSignals(Named()).value();
  Say(absl::StrCat("agent ", ::getpid()));
  while (true) {
    pollfd polls[] = {{link.fd(), POLLIN, 0}, {signals.get(), POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0) continue;
    signalfd_siginfo info;
    while (::read(signals.get(), &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal != SIGCHLD) Say(SignalName(signal));
      if (signal == SIGTERM) return 3;
      if (signal == standstill.signal) StandStill(link, standstill);
    }
    if (polls[0].revents != 0) {
      const Clock& clock = MonotonicClock();
      KillAndReapDescendants(clock, clock.Now() + std::chrono::seconds(100));
      Say("the keeper is dead");
      return 4;
    }
  }
}

int Agent(KeeperLink link, char** words, char* program) {
  std::vector<Process> workers;
  Standstill standstill;
  for (; *words != nullptr; ++words) {
    const std::string verb = *words;
    int code = 0;
    if (verb == "abort") std::abort();
    if (verb == "late") return BeLate();
    if (verb == "exec") {
      std::vector<std::string> env = Environment();
      env.push_back(link.ForExec());
      std::vector<char*> pointers;
      for (std::string& entry : env) pointers.push_back(entry.data());
      pointers.push_back(nullptr);
      words[0] = program;
      ::execve("/proc/self/exe", words, pointers.data());
      return 1;
    }
    const char* value = *++words;
    HLAUNCH_CHECK(value != nullptr);
    if (verb == "exit" && absl::SimpleAtoi(value, &code)) return code;
    if (verb == "threads" && absl::SimpleAtoi(value, &code)) {
      while (code-- > 0) std::thread([] { ::pause(); }).detach();
    }
    if (verb == "on" && absl::SimpleAtoi(value, &standstill.signal)) {
      standstill.spins = std::string(*++words) == "spin";
    }
    if (verb == "run") {
      workers.push_back(
          Process::Spawn({.argv = {"/bin/sh", "-c", value}, .env = Environment()}).value());
    }
    if (verb == "directory") link.LeaveBehind(value);
    if (verb == "death_report") {
      HLAUNCH_CHECK(link.RegisterDeathReport({"/bin/sh", "-c", "echo \"$SECRET\" > \"$0\"", value},
                                             {"SECRET=told"})
                        .ok());
    }
  }
  return ServeSignals(link, standstill);
}

}  // namespace
}  // namespace hlaunch

int main(int, char** argv) {
  using hlaunch::KeeperLink;
  absl::StatusOr<KeeperLink> link = KeeperLink::FromEnv();
  if (link.ok()) return hlaunch::Agent(*std::move(link), argv + 1, argv[0]);
  return hlaunch::RunUnderKeeper(
      [argv](KeeperLink made) { return hlaunch::Agent(std::move(made), argv + 1, argv[0]); },
      hlaunch::Named(), {}, hlaunch::BeginTime());
}
