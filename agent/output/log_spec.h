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

// Which of a worker's two streams; the values are torchrun's.
enum class Streams : uint8_t { kNone = 0, kOut = 1, kErr = 2, kBoth = 3 };

// A choice for every local rank, as in "3" or "0:1,12:3". A value.
struct StreamChoice {
  Streams others = Streams::kNone;  // For local ranks that are not in `ranks`.
  std::map<int, Streams> ranks;

  Streams Of(int local_rank) const {
    const auto found = ranks.find(local_rank);
    return found == ranks.end() ? others : found->second;
  }
};

// When a file is renamed to `<path>.1`, and the older one to `<path>.2`. A value.
struct Rotation {
  size_t bytes = 0;  // The limit of a file's size; 0: no rotation.
  int keep = 1;      // How many renamed files are kept.
};

// Whether text that several ranks print at the same time is shown once on the console.
enum class Folding : uint8_t { kOnTerminal, kAlways, kNever };

// Where the output of this node's workers goes. A value, made once by the launcher.
struct LogSpec {
  // The files are `<job id>_<random>/attempt_<restart count>/<local rank>/{stdout,stderr}.log` and
  // error.json below it, as with torchrun. Empty if the user named none: one below TMPDIR is used
  // if needed. "/dev/null": no files at all, not even error files.
  std::string directory;
  StreamChoice redirects;     // To the file only.
  StreamChoice tee;           // To the file and the console; overrides `redirects`.
  std::set<int> shown_ranks;  // Local ranks that the console shows; empty: all.
  // Lines that contain any of these are copied to a file shared by all local ranks.
  std::vector<std::string> stdout_filters;
  std::vector<std::string> stderr_filters;
  // The prefix of console lines, with ${role_name}, ${hostname}, ${local_rank}, ${rank}, ${stream},
  // ${time}; empty: "[${rank}] ", and no prefix for a job's only worker.
  std::string prefix_template;
  bool no_prefix = false;     // Lines get no prefix, but still stay whole.
  bool timestamps = false;    // Each line's time comes before the prefix.
  bool merge_stderr = false;  // The workers' stderr on the console goes to our stdout.
  Folding folding = Folding::kOnTerminal;
  Rotation rotation;  // For each stream's file.
};

// True if the user will find files afterwards. Pure.
bool KeepsFiles(const LogSpec& spec);

}  // namespace hlaunch
