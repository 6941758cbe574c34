// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/job/node_questions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hlaunch {

absl::StatusOr<uint64_t> NodeQuestions::Begin(const RankQuestion& question,
                                              std::vector<Candidate> nodes, Instant now) {
  if (open_.size() >= kMaxQuestions) {
    return absl::ResourceExhaustedError(absl::StrCat(
        kMaxQuestions, " questions about this job are open; ask again in a few seconds"));
  }
  const uint64_t number = ++last_;
  Open open;
  open.patience = std::clamp<Duration>(question.patience, Duration::zero(), kMaxPatience);
  open.deadline = now + open.patience;
  open.max_bytes = std::min(kMaxAnswersBytes / std::max<size_t>(nodes.size(), 1), kMaxAnswerBytes);
  for (Candidate& node : nodes) {
    if (node.word.problem.empty()) {
      told_.emplace_back(node.node_id, NodeQuestion{number, question, open.max_bytes});
      open.awaited.emplace(std::move(node.node_id), open.words.size());
    }
    open.words.push_back(std::move(node.word));
  }
  const auto begun = open_.emplace(number, std::move(open)).first;
  if (begun->second.awaited.empty()) Finish(begun);
  return number;
}

void NodeQuestions::Answer(absl::string_view node_id, NodeAnswer answer) {
  const auto question = open_.find(answer.number);
  if (question == open_.end()) return;
  Open& open = question->second;
  const auto node = open.awaited.find(node_id);
  if (node == open.awaited.end()) return;
  NodeWord& word = open.words[node->second];
  if (answer.text.size() > open.max_bytes) {
    word.problem = absl::StrCat("has an answer of ", answer.text.size(), " bytes, and ",
                                open.max_bytes, " are taken: ask for some of its ranks");
  } else {
    word.text = std::move(answer.text);
    word.problem = std::move(answer.problem);
  }
  open.awaited.erase(node);
  if (open.awaited.empty()) Finish(question);
}

void NodeQuestions::Gone(absl::string_view node_id, absl::string_view why) {
  for (auto question = open_.begin(); question != open_.end();) {
    Open& open = question->second;
    const auto node = open.awaited.find(node_id);
    if (node != open.awaited.end()) {
      open.words[node->second].problem = std::string(why);
      open.awaited.erase(node);
    }
    question = open.awaited.empty() ? Finish(question) : std::next(question);
  }
}

bool NodeQuestions::GiveUp(uint64_t number) { return open_.erase(number) > 0; }

void NodeQuestions::Tick(Instant now) {
  for (auto question = open_.begin(); question != open_.end();) {
    Open& open = question->second;
    if (open.deadline > now) {
      ++question;
      continue;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(open.patience).count();
    for (const auto& [node_id, place] : open.awaited) {
      open.words[place].problem = absl::StrCat("has not answered for ", seconds, " s");
    }
    question = Finish(question);
  }
}

std::optional<Instant> NodeQuestions::NextDeadline() const {
  std::optional<Instant> next;
  for (const auto& [number, open] : open_) {
    next = std::min(next.value_or(open.deadline), open.deadline);
  }
  return next;
}

std::vector<std::pair<std::string, NodeQuestion>> NodeQuestions::TakeTold() {
  return std::exchange(told_, {});
}

std::vector<std::pair<uint64_t, std::vector<NodeWord>>> NodeQuestions::TakeFinished() {
  return std::exchange(finished_, {});
}

NodeQuestions::Map::iterator NodeQuestions::Finish(Map::iterator question) {
  finished_.emplace_back(question->first, std::move(question->second.words));
  return open_.erase(question);
}

}  // namespace hlaunch
