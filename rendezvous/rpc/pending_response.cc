// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/pending_response.h"

#include <algorithm>

#include "rendezvous/rpc/convert.h"

namespace hlaunch {
namespace {

constexpr size_t kMostWordBytes = 1 << 20;  // In one response.
constexpr size_t kMostUnseen = 64;          // Responses of a stream; older ones prove less.

bool SamePlace(const VoterMember& a, const VoterMember& b) {
  return a.incarnation == b.incarnation && a.address == b.address;
}

}  // namespace

void PendingResponse::Put(const NodeQuestion& question) {
  questions_.push_back(question);
  if (questions_.size() > kMaxQuestions) questions_.pop_front();
}

void PendingResponse::Answer(uint64_t read) {
  answer_ = true;
  heard_ = read;
}

bool PendingResponse::empty() const {
  return !directive_ && !answer_ && !probe_ && !redirects_ && questions_.empty() && words_.empty();
}

void PendingResponse::Pack(const JobPolicy* policy, const VoterMembers& voters, Instant now,
                           v1::AttachResponse* response) {
  responses_.emplace_back(++written_, now);
  if (responses_.size() > kMostUnseen) responses_.pop_front();
  const bool redirects = std::exchange(redirects_, false);
  if (!redirects && policy != nullptr && !std::exchange(policy_sent_, true)) {
    *response->mutable_policy() = ToProto(*policy);
  }
  if (voters.size() != told_.size() ||
      !std::equal(told_.begin(), told_.end(), voters.begin(), SamePlace)) {
    for (const VoterMember& one : voters) *response->add_voters() = ToProto(one);
    told_ = voters;
  }
  if (std::exchange(probe_, false)) response->set_probe(true);
  response->set_heard(heard_);
  if (directive_) *response->mutable_directive() = ToProto(*std::exchange(directive_, {}));
  for (const NodeQuestion& question : std::exchange(questions_, {})) {
    *response->add_questions() = ToProto(question);
  }
  for (size_t bytes = 0; !words_.empty();) {
    bytes += words_.begin()->second.text.size();
    if (bytes > kMostWordBytes) break;
    *response->add_words() = ToProto(words_.extract(words_.begin()).mapped());
  }
  answer_ = false;
}

Duration PendingResponse::AgeOfMessage(uint64_t seen, Instant now) {
  while (!responses_.empty() && responses_.front().first <= seen) {
    seen_at_ = responses_.front().second;
    responses_.pop_front();
  }
  return now - seen_at_;
}

}  // namespace hlaunch
