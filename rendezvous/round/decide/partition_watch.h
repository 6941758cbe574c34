// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/decide/partition.h"

namespace hlaunch {

// How long to wait for the reports of a round's nodes about the paths between them, what people
// were told of them, and which nodes lose their seats once the round has stopped. No record holds
// it: nodes report again, and a preflight finds out the same.
//
// A value that belongs to the thread of its RoundTable.
class PartitionWatch {
 public:
  // Both ends of a cut path notice it within this time: one turn of the health watch and two looks.
  static constexpr Duration kBothSpeak = std::chrono::seconds(30);

  // A round begins, without any reports.
  void BeginRound();
  // A node has reported something new.
  void NoteWord() { changed_ = true; }
  // Returns true if there is something to judge.
  bool Due(Instant t) const { return changed_ || (due_ && t >= *due_); }
  // Returns the verdict on the reports if it is new; kNothing: what people were told is over. Sets
  // rule.all_have_spoken itself. Requires: Due.
  std::optional<PartitionVerdict> Judge(const std::vector<WaysWord>& words, PartitionRule rule,
                                        Instant t);
  // Returns when Judge is due at the latest, while only one end of a path has reported.
  std::optional<Instant> due() const { return due_; }

  // The ids of the nodes that the next round must be without, and why.
  struct CutOff {
    std::vector<std::string> node_ids;
    std::string reason;
  };
  void MarkCutOff(CutOff cut_off) { cut_off_ = std::move(cut_off); }
  CutOff TakeCutOff() { return std::exchange(cut_off_, {}); }

 private:
  bool changed_ = false;        // Since the last look.
  std::optional<Instant> due_;  // Only one end of a path has reported; the other has until then.
  std::string told_;            // What people were told.
  CutOff cut_off_;
};

}  // namespace hlaunch
