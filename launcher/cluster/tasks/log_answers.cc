// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/log_answers.h"

#include <sys/inotify.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "launcher/cluster/tasks/read_log.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMostWaiting = 256;
constexpr int kLongestWait = 20;
// A job that writes much is not read for each line.
constexpr Duration kPauseBetweenReads = std::chrono::milliseconds(30);

}  // namespace

// A question that waits. Belongs to LogAnswers.
struct LogAnswers::Waiting {
  Waiting(asio::io_context& loop, LogQuestion asked, Done answer)
      : question(std::move(asked)), done(std::move(answer)), patience(loop), pause(loop) {}
  const LogQuestion question;
  const Done done;
  asio::steady_timer patience;
  asio::steady_timer pause;
  bool paused = false;
  int watch = 0;
};

LogAnswers::LogAnswers(asio::io_context& loop, const Parts& parts)
    : loop_(loop), parts_(parts), watch_(loop, IN_MODIFY | IN_CREATE | IN_MOVED_TO) {}

LogAnswers::~LogAnswers() = default;

absl::StatusOr<LogAnswer> LogAnswers::Read(const LogQuestion& question) const {
  const PartRecord* const record = parts_.Find(question.job);
  if (record == nullptr || record->order.node_rank != question.node_rank) {
    return absl::NotFoundError(absl::StrCat("the log of node ", question.node_rank, " of job ",
                                            question.job, " is not on host ", parts_.host()));
  }
  const bool over = !parts_.Lives(question.job);
  const auto folder = parts_.folders().OpenJob(question.job);
  if (!folder.ok()) {
    LogAnswer nothing;
    nothing.ended = over;
    return nothing;
  }
  return ReadLog(folder->get(), record->order.uid, question, over);
}

void LogAnswers::Ask(const LogQuestion& question, Done done) {
  absl::StatusOr<LogAnswer> answer = Read(question);
  const bool has_news = !answer.ok() || !answer->text.empty() || answer->ended || answer->lost;
  if (has_news || question.wait_s <= 0 || waiting_.size() >= kMostWaiting) {
    return done(std::move(answer));
  }
  LogQuestion later = question;
  later.position = answer->position;  // The tail was counted now, so later lines begin here.
  if (later.position.empty()) later.tail = -1;
  const uint64_t number = next_++;
  auto waiting = std::make_unique<Waiting>(loop_, std::move(later), std::move(done));
  if (const auto folder = parts_.folders().OpenJob(question.job); folder.ok()) {
    waiting->watch = watch_.Watch(folder->get(), [this, number] { LookSoon(number); });
  }
  waiting->patience.expires_after(std::chrono::seconds(std::min(question.wait_s, kLongestWait)));
  waiting->patience.async_wait([this, number](std::error_code error) {
    if (error) return;
    const auto found = waiting_.find(number);
    if (found != waiting_.end()) Finish(number, Read(found->second->question));
  });
  waiting_[number] = std::move(waiting);
  Try(number);  // Something may have been written before the watch began.
}

void LogAnswers::Look(uint64_t job) {
  std::vector<uint64_t> of_job;
  for (const auto& [number, waiting] : waiting_) {
    if (waiting->question.job == job) of_job.push_back(number);
  }
  for (const uint64_t number : of_job) Try(number);
}

void LogAnswers::LookSoon(uint64_t number) {
  Waiting& waiting = *waiting_.at(number);
  if (std::exchange(waiting.paused, true)) return;
  waiting.pause.expires_after(kPauseBetweenReads);
  waiting.pause.async_wait([this, number](std::error_code error) {
    if (error) return;
    const auto found = waiting_.find(number);
    if (found == waiting_.end()) return;
    found->second->paused = false;
    Try(number);
  });
}

void LogAnswers::Try(uint64_t number) {
  absl::StatusOr<LogAnswer> answer = Read(waiting_.at(number)->question);
  if (answer.ok() && answer->text.empty() && !answer->ended && !answer->lost) return;
  Finish(number, std::move(answer));
}

void LogAnswers::Finish(uint64_t number, absl::StatusOr<LogAnswer> answer) {
  const auto found = waiting_.find(number);
  const std::unique_ptr<Waiting> waiting = std::move(found->second);
  waiting_.erase(found);
  watch_.Forget(waiting->watch);
  waiting->done(std::move(answer));
}

}  // namespace hlaunch
