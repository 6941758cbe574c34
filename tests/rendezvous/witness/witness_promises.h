// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/witness/witness.h"

// What a group of witnesses promises, told from what the simulation knows.

namespace hlaunch {

class WitnessPromises {
 public:
  // The first promise that was broken; empty: none.
  const std::string& violation() const { return violation_; }
  void Violated(std::string what);

  // A new record that follows from the record `parent`; 0: from none.
  uint64_t NewRecord(uint64_t parent);

  // `name` has begun to lead with that record.
  void Leads(const std::string& name, Term term, uint64_t record);
  // It was told that its record is decided, and may act on it.
  void Decided(const std::string& name, Term term, uint64_t record);
  void Sent(const WitnessMessage& message);
  // What it holds, after each of its steps.
  void Holds(const Witness& witness);

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
  uint64_t decided_ = 0;  // The last record that anybody was told is decided,
  Term term_ = 0;         // and the last term that was led.
  uint64_t decisions_ = 0;
  uint64_t leaders_ = 0;
  std::map<std::pair<Incarnation, Term>, Incarnation> votes_;
  std::vector<Held> held_;  // By incarnation.
};

}  // namespace hlaunch
