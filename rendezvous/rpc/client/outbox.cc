// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/outbox.h"

#include <string>
#include <utility>

namespace hlaunch {

void Outbox::Put(const NodeUpdate& update) {
  MutexLock lock(&mu_);
  latest_ = update;
  ++version_;
}

void Outbox::Put(NodeAnswer answer) {
  MutexLock lock(&mu_);
  answers_.push_back(std::move(answer));
  if (answers_.size() > kMaxQuestions) answers_.pop_front();
}

void Outbox::Put(RoundWord word) {
  MutexLock lock(&mu_);
  word_ = std::move(word);
}

void Outbox::Close(Instant until) {
  MutexLock lock(&mu_);
  close_until_ = until;
}

Outbox::State Outbox::state() const {
  MutexLock lock(&mu_);
  const bool last = latest_.phase == NodePhase::kLeft || latest_.phase == NodePhase::kFinished;
  return {version_, last, close_until_};
}

Instant Outbox::NextAt(Instant now) const {
  MutexLock lock(&mu_);
  return NextAtLocked(now);
}

Instant Outbox::NextAtLocked(Instant now) const {
  if (!answers_.empty()) return pace_.When(answers_.front().text.size(), now);
  return word_ ? pace_.When(word_->text.size(), now) : Instant::max();
}

Outbox::Message Outbox::Take(uint64_t sent, bool joined, Instant now) {
  MutexLock lock(&mu_);
  Message message{latest_, version_, {}, {}, close_until_.has_value()};
  if (version_ != sent || !joined || NextAtLocked(now) > now) return message;
  if (answers_.empty()) {
    message.word = std::exchange(word_, std::nullopt);
    pace_.Sent(message.word->text.size(), now);
  } else {
    message.answer = std::move(answers_.front());
    answers_.pop_front();
    pace_.Sent(message.answer->text.size(), now);
  }
  return message;
}

}  // namespace hlaunch
