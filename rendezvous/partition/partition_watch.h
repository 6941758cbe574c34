// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/partition/partition.h"

namespace hlaunch {

// Until when the words of a round's nodes about the ways between them are waited for, and what
// people know of it; and who is to lose its seat for it once the round has stopped. No record keeps
// it: nodes say it again, and a preflight finds out the same.
//
// A value that belongs to the thread of its RoundTable.
class PartitionWatch {
 public:
  // Both ends of a way find out within so long: a turn of the health watch and two looks.
  static constexpr Duration kBothSpeak = std::chrono::seconds(30);

  // A round begins: nothing was said.
  void BeginRound();
  // A node has said something new.
  void NoteWord() { changed_ = true; }
  // Whether there is something to judge.
  bool Due(Instant t) const { return changed_ || (due_ && t >= *due_); }
  // What follows from the words, if that is new; kNothing: what people were told is over. Sets what
  // `rule` says of who has spoken. Requires: Due.
  std::optional<PartitionVerdict> Judge(const std::vector<WaysWord>& words, PartitionRule rule,
                                        Instant t);
  // When Judge is due at the latest, while one end of a way has spoken.
  std::optional<Instant> due() const { return due_; }

  // The nodes that the next round is to be without, by id, and why.
  struct CutOff {
    std::vector<std::string> node_ids;
    std::string reason;
  };
  void MarkCutOff(CutOff cut_off) { cut_off_ = std::move(cut_off); }
  CutOff TakeCutOff() { return std::exchange(cut_off_, {}); }

 private:
  bool changed_ = false;        // Since the last look.
  std::optional<Instant> due_;  // One end of a way has spoken; the other has until then.
  std::string told_;            // What people know.
  CutOff cut_off_;
};

}  // namespace hlaunch
