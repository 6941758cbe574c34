// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_relay.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hlaunch {

void HeadRelay::Ask(uint64_t peer, const std::string& host, absl::string_view verb,
                    nlohmann::json body, bool bounded, Instant now, Done done) {
  size_t& count = bounded_[peer];
  if (bounded && count >= kMostOfAHost) {
    return done(absl::ResourceExhaustedError(
        absl::StrCat(host, " has ", count, " questions before it; try again")));
  }
  count += bounded ? 1 : 0;
  const uint64_t id = ++last_id_;
  questions_[id] = {peer, host, bounded, now + kPatience, std::move(done)};
  send_(peer, hlaunch::Question(id, verb, std::move(body)));
}

void HeadRelay::TakeAnswer(uint64_t peer, const Envelope& answer) {
  const auto found = questions_.find(answer.id);
  if (found == questions_.end() || found->second.peer != peer) return;
  if (answer.error.ok()) {
    Finish(answer.id, answer.body);
  } else {
    Finish(answer.id, answer.error);
  }
}

void HeadRelay::Left(uint64_t peer) {
  std::vector<uint64_t> ids;
  for (const auto& [id, question] : questions_) {
    if (question.peer == peer) ids.push_back(id);
  }
  for (const uint64_t id : ids) {
    Finish(id, absl::UnavailableError(
                   absl::StrCat(questions_.at(id).host, " went away before it answered")));
  }
  bounded_.erase(peer);
}

void HeadRelay::Tick(Instant now) {
  std::vector<uint64_t> late;
  for (const auto& [id, question] : questions_) {
    if (now >= question.until) late.push_back(id);
  }
  for (const uint64_t id : late) {
    Finish(id, absl::DeadlineExceededError(
                   absl::StrCat(questions_.at(id).host, " did not answer in time")));
  }
}

void HeadRelay::Finish(uint64_t id, const absl::StatusOr<nlohmann::json>& answer) {
  auto question = questions_.extract(id);
  if (question.empty()) return;
  if (question.mapped().bounded) --bounded_[question.mapped().peer];
  question.mapped().done(answer);
}

}  // namespace hlaunch
