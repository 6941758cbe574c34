// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/cli/mpirun/mpirun_line.h"

// The words of mpirun (Open MPI) and mpiexec (MPICH's Hydra, Intel MPI), and what hlaunch does with
// each.

namespace hlaunch {

// How far hlaunch does what a word says.
enum class MpirunVerdict {
  kSame,
  kBetter,    // The same and more, or without a fault that mpirun has.
  kAccepted,  // Not needed here, or changes nothing.
  kRefused,   // With the reason and what to write instead.
};

// A word and what hlaunch does with it. One row of the manual page and of --help.
struct MpirunWord {
  const char* names;  // All spellings, "-n, -np"; one dash or two are the same.
  const char* value;  // The names of its values: "N", "NAME VALUE"; empty: a flag.
  MpirunVerdict verdict;
  // The text for the page, in Markdown. For a refused word it is the reason, which the error shows
  // too.
  const char* said;
  // The option of hlaunch that is the same, with the same value; null if `take` handles the word.
  const char* option;
  absl::Status (*take)(absl::Span<const std::string> values, MpirunLine& line) = nullptr;
  bool under_that_name = false;  // Not accepted if called as hlaunch.

  size_t num_values() const;
  bool IsNamed(absl::string_view name) const;  // Without dashes.
};

// All words, in the order of the page.
absl::Span<const MpirunWord> MpirunWords();

// Finds the word in `typed`, which has one dash or two and may have `=value`; null if there is
// none.
const MpirunWord* FindMpirunWord(absl::string_view typed);

// What the page says of a word, as in "same: …" or "refused: …".
std::string SaidOf(const MpirunWord& word);

// What `mpirun --help` prints.
std::string MpirunHelp();

}  // namespace hlaunch
