// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/remote/detached/detached_words.h"
#include "launcher/remote/detached/log_line.h"

namespace hlaunch {

// The earliest time of --since in the format of the log: "10m" before `now_ms`, or a time as it was
// typed, from its year on. An empty text stays empty. Pure.
//
// Errors:
//   InvalidArgument - `text` is neither a span nor a time.
absl::StatusOr<std::string> ReadSince(absl::string_view text, int64_t now_ms);

// Prints lines of a log as `attach` and `logs` do. Belongs to one thread.
class LinePrinter {
 public:
  // `options` must outlive the printer. `since` comes from ReadSince. If `both_streams`, lines of
  // stderr go to stderr, else all lines go to stdout.
  LinePrinter(const DetachedOptions& options, std::string since, bool both_streams)
      : options_(options), since_(std::move(since)), both_streams_(both_streams) {}

  void Show(const LogLine& line);
  // Whether --rank and --since let `line` pass. If a line comes in parts, the first one decides.
  bool IsWanted(const LogLine& line);
  // Prints `line`, whether it is wanted or not.
  void Put(const LogLine& line) const;

 private:
  bool Passes(const LogLine& line) const;
  void PutTo(const LogLine& line, std::FILE* file) const;

  struct Part {
    bool goes_on = false, wanted = false;
  };
  const DetachedOptions& options_;
  const std::string since_;
  const bool both_streams_;
  std::array<Part, 2> parts_;
};

}  // namespace hlaunch
