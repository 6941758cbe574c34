// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/query/stack_look.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/watch/hang/tap.h"
#include "agent/watch/stall/stack_dump.h"
#include "agent/watch/stall/stack_text.h"
#include "agent/workers/process/descendants.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "proto/base/clock.h"

namespace hlaunch {
namespace {

constexpr Duration kAnswerLimit = std::chrono::seconds(2);  // For a rank's own server.

// Says why no tool can stop the process to look at it; empty if a tool can.
std::string WhyNone(const ProcessEntry& process) {
  switch (process.state) {
    case 'T':
      return "is stopped (SIGSTOP, or job control); kill -CONT lets it go on";
    case 't':
      return "is held by a debugger";
    case 'Z':
      return "has exited";
    default:
      return "";
  }
}

}  // namespace

struct StackLook::State {
  State(asio::io_context& the_loop, const LookPlan& plan, bool the_native, Duration limit,
        std::function<void(std::vector<SharedStack>)> the_done)
      : loop(the_loop),
        tap(plan.tap),
        tools(plan.tools),
        native(the_native),
        answer_limit(std::min(limit / 2, kAnswerLimit)),
        deadline(MonotonicClock().Now() + limit),
        done(std::move(the_done)) {}

  void Begin(const std::vector<StackWanted>& wanted) {
    asked = 1;
    for (const StackWanted& one : wanted) {
      found.push_back({{one.rank}, {}, ""});
      LookAt(found.size() - 1, one);
    }
    asio::post(loop, [this, alive = std::weak_ptr<bool>(life)] {
      if (!alive.expired()) CountAnswer();
    });
  }

  void LookAt(size_t place, const StackWanted& one) {
    const pid_t server = FindTapServer(tap, one.rank, one.pid);
    const auto process = ReadProcess(server != 0 ? server : one.pid);
    found[place].problem = process ? WhyNone(*process) : "has exited";
    if (!found[place].problem.empty()) return;
    if (server == 0 || native) return Dump(place, *process);
    ++asked;
    requests.push_back(std::make_unique<TapRequest>(
        loop, TapSocketPath(tap, one.rank, server), "dump_traceback",
        [this, place, process = *process](const absl::StatusOr<std::string>& text) {
          if (text.ok()) found[place].frames = SummarizeStacks(*text).frames;
          if (found[place].frames.empty()) Dump(place, process);
          CountAnswer();
        },
        answer_limit));
  }

  void Dump(size_t place, const ProcessEntry& process) {
    if (process.state == 'D') {
      found[place].problem = absl::StrCat("is stuck in the kernel: ", process.ToString());
      return;
    }
    to_dump.push_back(native ? StackTarget{process} : TapStackTarget(process));
    places.push_back(place);
  }

  void CountAnswer() {
    if (--asked > 0) return;
    if (to_dump.empty()) return Finish();
    const Duration left = std::max<Duration>(deadline - MonotonicClock().Now(), Duration::zero());
    dump.emplace(loop, to_dump, tools, left, [this](const std::vector<ProcessStacks>& stacks) {
      for (size_t i = 0; i < std::min(stacks.size(), places.size()); ++i) {
        SharedStack& stack = found[places[i]];
        stack.frames = SummarizeStacks(stacks[i].text).frames;
        if (stack.frames.empty()) {
          stack.problem = absl::StrCat(stacks[i].process, ": ", stacks[i].problem);
        }
      }
      Finish();
    });
  }

  void Finish() {
    const auto tell = std::exchange(done, nullptr);
    tell(std::move(found));
  }

  asio::io_context& loop;
  const std::string tap;
  const std::string tools;
  const bool native;
  const Duration answer_limit;
  const Instant deadline;
  std::function<void(std::vector<SharedStack>)> done;
  std::vector<SharedStack> found;
  int asked = 0;  // Servers that have not answered, plus one for the start.
  std::vector<std::unique_ptr<TapRequest>> requests;
  std::vector<StackTarget> to_dump;
  std::vector<size_t> places;  // Their indexes in `found`.
  std::optional<StackDump> dump;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

StackLook::StackLook(asio::io_context& loop, const LookPlan& plan, std::vector<StackWanted> wanted,
                     bool native, Duration limit,
                     std::function<void(std::vector<SharedStack>)> done)
    : state_(std::make_unique<State>(loop, plan, native, limit, std::move(done))) {
  state_->Begin(wanted);
}

StackLook::~StackLook() = default;

pid_t StackLook::tool() const { return state_->dump ? state_->dump->tool() : 0; }

}  // namespace hlaunch
