// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/query/rank_answers.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/watch/hang/snapshot_text.h"
#include "agent/watch/query/merge_stacks.h"
#include "agent/watch/query/stack_look.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {
namespace {

// The time between two looks. Comparing them shows which rank makes progress.
constexpr Duration kApart = std::chrono::seconds(1);
constexpr Duration kOnTheWay = std::chrono::seconds(2);  // For the answer to travel back in time.
constexpr Duration kLeastLimit = std::chrono::seconds(1);

bool IsWanted(const RankQuestion& question, Rank rank) {
  return question.ranks.empty() ||
         std::binary_search(question.ranks.begin(), question.ranks.end(), rank);
}

LookPlan ForAPerson(LookPlan plan) {
  plan.patience = Duration::zero();
  plan.closely = true;
  plan.answer_limit = std::chrono::seconds(2);
  plan.dump_limit = std::chrono::seconds(3);
  return plan;
}

}  // namespace

struct RankAnswers::State {
  State(asio::io_context& the_loop, LookPlan the_plan)
      : loop(the_loop),
        plan(ForAPerson(std::move(the_plan))),
        workers(static_cast<size_t>(plan.workers)),
        timer(the_loop) {}

  struct Worker {
    pid_t pid = 0;  // 0 if it has not started.
    bool ended = false;
    bool succeeded = false;
  };

  struct Open {
    NodeQuestion asked;
    std::function<void(NodeAnswer)> done;
  };

  const RankQuestion& question() const { return open.front().asked.question; }

  // Starts the first waiting question.
  void Next() {
    busy = !open.empty();
    if (!busy) return;
    if (question().kind == RankQuestion::Kind::kStacks) return TakeStacks();
    look.emplace(loop, plan);
    for (size_t i = 0; i < workers.size(); ++i) {
      const int local_rank = static_cast<int>(i);
      if (workers[i].pid != 0) look->Started(local_rank, workers[i].pid);
      if (workers[i].ended) look->Ended(local_rank, workers[i].succeeded);
    }
    look->Begin([this] {
      timer.expires_after(kApart);
      timer.async_wait([this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
        if (!error && !alive.expired()) look->Begin([this] { TellSnapshots(); });
      });
    });
  }

  void TellSnapshots() {
    std::vector<RankSnapshot> snapshots = look->snapshots();
    std::erase_if(snapshots,
                  [this](const RankSnapshot& rank) { return !IsWanted(question(), rank.rank); });
    Finish(SnapshotText(snapshots));
  }

  void TakeStacks() {
    std::vector<StackWanted> wanted;
    std::vector<SharedStack> gone;
    for (size_t i = 0; i < workers.size(); ++i) {
      const Rank rank = plan.first_rank + static_cast<int>(i);
      if (!IsWanted(question(), rank)) continue;
      if (workers[i].pid != 0 && !workers[i].ended) {
        wanted.push_back({rank, workers[i].pid});
      } else {
        gone.push_back({{rank}, {}, workers[i].ended ? "has exited" : "has not started"});
      }
    }
    const Duration limit = std::max(question().patience - kOnTheWay, kLeastLimit);
    stacks.emplace(
        loop, plan, wanted, question().native, limit, [this, gone](std::vector<SharedStack> found) {
          found.insert(found.end(), gone.begin(), gone.end());
          Finish(StacksText(MergeStacks(std::move(found)), open.front().asked.max_bytes));
        });
  }

  void Finish(std::string text) {
    Open first = std::move(open.front());
    open.pop_front();
    NodeAnswer answer{first.asked.number, std::move(text), ""};
    if (answer.text.empty() || answer.text.size() > first.asked.max_bytes) {
      answer.text.clear();
      answer.problem = "has too much to say: ask for some of its ranks, with --rank";
    }
    // Posted, because the object that found the answer is still on the call stack.
    asio::post(loop, [this, alive = std::weak_ptr<bool>(life), done = std::move(first.done),
                      answer = std::move(answer)] {
      if (alive.expired()) return;
      look.reset();
      stacks.reset();
      done(answer);
      Next();
    });
  }

  asio::io_context& loop;
  const LookPlan plan;
  std::vector<Worker> workers;  // By local rank.
  std::deque<Open> open;        // The first is being answered.
  bool busy = false;            // Next will be called.
  std::optional<NodeLook> look;
  std::optional<StackLook> stacks;
  asio::steady_timer timer;                                         // Between two looks.
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

RankAnswers::RankAnswers(asio::io_context& loop, LookPlan plan)
    : state_(std::make_unique<State>(loop, std::move(plan))) {}

RankAnswers::~RankAnswers() = default;

void RankAnswers::Started(int local_rank, pid_t pid) {
  state_->workers[static_cast<size_t>(local_rank)].pid = pid;
  if (state_->look) state_->look->Started(local_rank, pid);
}

void RankAnswers::Ended(int local_rank, bool succeeded) {
  State::Worker& worker = state_->workers[static_cast<size_t>(local_rank)];
  worker.ended = true;
  worker.succeeded = succeeded;
  if (state_->look) state_->look->Ended(local_rank, succeeded);
}

void RankAnswers::Answer(const NodeQuestion& question, std::function<void(NodeAnswer)> done) {
  State& s = *state_;
  if (s.open.size() >= kMaxQuestions) {
    return done({question.number, "", "is busy with other questions"});
  }
  s.open.push_back({question, std::move(done)});
  if (std::exchange(s.busy, true)) return;
  asio::post(s.loop, [state = state_.get(), alive = std::weak_ptr<bool>(s.life)] {
    if (!alive.expired()) state->Next();
  });
}

std::vector<pid_t> RankAnswers::tools() const {
  std::vector<pid_t> pids;
  if (state_->look) pids = state_->look->tools();
  if (state_->stacks && state_->stacks->tool() != 0) pids.push_back(state_->stacks->tool());
  return pids;
}

}  // namespace hlaunch
