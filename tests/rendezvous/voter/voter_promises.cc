// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "tests/rendezvous/voter/voter_promises.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {

void VoterPromises::Violated(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

uint64_t VoterPromises::NewRecord(uint64_t parent) {
  records_.push_back({parent, records_[parent].depth + 1});
  return records_.size() - 1;
}

bool VoterPromises::Follows(uint64_t record, uint64_t ancestor) const {
  while (records_[record].depth > records_[ancestor].depth) record = records_[record].parent;
  return record == ancestor;
}

void VoterPromises::Leads(const std::string& name, Term term, uint64_t record) {
  ++leaders_;
  if (term <= term_) {
    Violated(absl::StrCat(name, " leads in term ", term, " though term ", term_, " was led"));
  }
  if (!Follows(record, decided_)) {
    Violated(absl::StrCat(name, " leads in term ", term, " from record ", record,
                          ", which does not follow from record ", decided_, " that was decided"));
  }
  term_ = term;
}

void VoterPromises::Decided(const std::string& name, Term term, uint64_t record) {
  ++decisions_;
  if (term != term_) {
    Violated(absl::StrCat(name, " decides in term ", term, " though term ", term_, " was led"));
  }
  if (!Follows(record, decided_) || record == decided_) {
    Violated(absl::StrCat(name, " decides record ", record, ", which does not follow from record ",
                          decided_, " that was decided"));
  }
  decided_ = record;
}

void VoterPromises::Sent(const VoterMessage& message) {
  if (message.kind != VoterMessage::Kind::kVote || !message.granted) return;
  const auto [vote, fresh] = votes_.insert({{message.from, message.asked}, message.to});
  if (!fresh && vote->second != message.to) {
    Violated(absl::StrCat("voter ", message.from, " votes twice in term ", message.asked));
  }
}

void VoterPromises::Holds(const Voter& voter) {
  const Incarnation incarnation = voter.self().incarnation;
  if (held_.size() <= incarnation) held_.resize(incarnation + 1);
  Held& held = held_[incarnation];
  const Ballot ballot = voter.entry() ? voter.entry()->ballot : Ballot{};
  if (voter.term() < held.term || ballot < held.ballot) {
    Violated(absl::StrCat("voter ", incarnation, " goes back"));
  }
  held = {voter.term(), ballot};
}

}  // namespace hlaunch
