// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/voter/voter.h"

// Checks what a group of voters promises against what the simulation knows.

namespace hlaunch {

class VoterPromises {
 public:
  // The first promise that was broken; empty if none was.
  const std::string& violation() const { return violation_; }
  void Violated(std::string what);

  // Adds a record that follows from the record `parent`; `parent` is 0 if it follows from none.
  uint64_t NewRecord(uint64_t parent);

  // `name` has begun to lead with `record`.
  void Leads(const std::string& name, Term term, uint64_t record);
  // `name` was told that `record` is decided, and may act on it.
  void Decided(const std::string& name, Term term, uint64_t record);
  void Sent(const VoterMessage& message);
  // Checks what the voter holds; called after each of its steps.
  void Holds(const Voter& voter);

  uint64_t decisions() const { return decisions_; }
  uint64_t leaders() const { return leaders_; }

 private:
  bool Follows(uint64_t record, uint64_t ancestor) const;

  struct Record {
    uint64_t parent = 0;
    uint64_t depth = 0;
  };
  struct Held {
    Term term = 0;
    Ballot ballot;
  };

  std::string violation_;
  std::vector<Record> records_ = {{}};
  uint64_t decided_ = 0;  // The last record that a leader was told is decided.
  Term term_ = 0;         // The last term that was led.
  uint64_t decisions_ = 0;
  uint64_t leaders_ = 0;
  std::map<std::pair<Incarnation, Term>, Incarnation> votes_;
  std::vector<Held> held_;  // By incarnation.
};

}  // namespace hlaunch
