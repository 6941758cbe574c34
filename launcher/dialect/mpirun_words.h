// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/dialect/mpirun_line.h"

// The words of mpirun (Open MPI) and mpiexec (MPICH's Hydra, Intel MPI), and what becomes of each.

namespace hlaunch {

// How far hlaunch does what a word says.
enum class MpirunVerdict {
  kSame,
  kBetter,    // The same and more, or without a fault that mpirun has.
  kAccepted,  // Needs no word here, or changes nothing.
  kRefused,   // With the reason, and what to write.
};

// A word and what becomes of it. One row of the page and of --help.
struct MpirunWord {
  const char* names;  // All spellings, "-n, -np"; one dash or two are the same.
  const char* value;  // What it is called, a word for each: "N", "NAME VALUE"; empty: a flag.
  MpirunVerdict verdict;
  // On the page, in Markdown. Of a refused word the reason, which is also what the error says.
  const char* said;
  // The option of hlaunch that it is, with the same value; null: `take` knows.
  const char* option;
  absl::Status (*take)(absl::Span<const std::string> values, MpirunLine& line) = nullptr;
  bool under_that_name = false;  // By the name hlaunch it is not taken.

  size_t num_values() const;
  bool IsNamed(absl::string_view name) const;  // Without dashes.
};

// All words, in the order of the page.
absl::Span<const MpirunWord> MpirunWords();

// The word that `typed` is, with one dash or two and with or without `=value`; null: there is none.
const MpirunWord* FindMpirunWord(absl::string_view typed);

// "same: …", "refused: …": what the page says of it.
std::string SaidOf(const MpirunWord& word);

// What `mpirun --help` prints.
std::string MpirunHelp();

}  // namespace hlaunch
