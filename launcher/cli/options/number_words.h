// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/options.h"

// The words of other launchers for the number of workers: -n, --num_gpus, --num_processes and so
// on.

namespace hlaunch {

// What such a word counts.
enum class NumberCounts {
  kAllRanks,  // The ranks of all nodes together, as -n of mpirun and --num_processes of accelerate.
  kEachNode,  // The workers of each node, as --num_gpus of DeepSpeed.
  kUnclear,   // One or the other: launchers differ. On one node both are the same.
};

// Such a word as it was typed. A value.
struct TypedNumber {
  std::string word;  // "--num_gpus"
  NumberCounts counts = NumberCounts::kAllRanks;
  int value = 0;
};

// A command line without such words. A value.
struct TypedLine {
  // What was typed, with --nproc-per-node in place of such a word. If --nproc-per-node was typed as
  // well, the word is left out here. A long option has dashes alone or underscores alone.
  std::vector<std::string> words;
  std::optional<TypedNumber> number;  // The last such word.
  bool says_workers = false;          // --nproc-per-node was typed.
  // How each option was typed the last time, by the name in its row.
  std::map<std::string, std::string> spellings;
};

// Reads the words that follow the program's name, up to the first that is no option. Pure.
//
// Errors:
//   InvalidArgument - the value of such a word is no number, or there are two different such words.
absl::StatusOr<TypedLine> ReadTypedLine(const std::vector<std::string>& words);

// Returns whether `word` is such a word, in either spelling and without a value. Pure.
bool IsNumberWord(absl::string_view word);

// Sets how many ranks there are if such a word was typed. Pure.
//
// Errors:
//   InvalidArgument - the number of each node's workers does not follow from the line.
absl::Status TakeNumber(const TypedLine& line, Options& options);

}  // namespace hlaunch
