// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hlaunch {

// Which of a worker's two streams; torchrun's numbers.
enum class Streams : uint8_t { kNone = 0, kOut = 1, kErr = 2, kBoth = 3 };

// A choice for every local rank, as in "3" or "0:1,12:3". A value.
struct StreamChoice {
  Streams others = Streams::kNone;  // Of local ranks that are not in `ranks`.
  std::map<int, Streams> ranks;

  Streams Of(int local_rank) const {
    const auto found = ranks.find(local_rank);
    return found == ranks.end() ? others : found->second;
  }
};

// When a file is put aside as `<path>.1`, and that one as `<path>.2`. A value.
struct Rotation {
  size_t bytes = 0;  // A file that would grow larger; 0: never.
  int keep = 1;      // Files put aside that are kept.
};

// Whether what several ranks print at the same time is shown once on the console.
enum class Folding : uint8_t { kOnTerminal, kAlways, kNever };

// Where the output of this node's workers goes. A value, made once by the launcher.
struct LogSpec {
  // Below it lies `<job id>_<random>/attempt_<restart count>/<local rank>/{stdout,stderr}.log` and
  // error.json, as torchrun has it. Empty: none was named, and one below TMPDIR serves if needed;
  // "/dev/null": no files at all, those of errors included.
  std::string directory;
  StreamChoice redirects;     // To the file only.
  StreamChoice tee;           // To the file and to the console; wins over `redirects`.
  std::set<int> shown_ranks;  // Local ranks that the console shows; empty: all.
  // Lines that hold any of these are copied to a side file of all local ranks.
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  // Of console lines, with ${role_name}, ${hostname}, ${local_rank}, ${rank}, ${stream}, ${time};
  // empty: "[${rank}] ", and none for a job's only worker.
  std::string prefix_template;
  bool no_prefix = false;     // Nothing stands before a line; they are whole all the same.
  bool timestamps = false;    // The time of each stands before that.
  bool merge_stderr = false;  // The console's stderr of workers goes to our stdout.
  Folding folding = Folding::kOnTerminal;
  Rotation rotation;  // Of each stream's file.
};

// Whether the user will find files afterwards. Pure.
bool KeepsFiles(const LogSpec& spec);

}  // namespace hlaunch
