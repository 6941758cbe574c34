// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/output/log_spec.h"
#include "proto/base/mutex.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Counts what all log files of a node could not write. Logs the first loss at once.
//
// Thread-safe.
class LogLosses {
 public:
  // Records that `bytes` bytes meant for `path` are lost because of errno `error`.
  void Add(absl::string_view path, int error, size_t bytes);
  // Says, for the person, how much was lost in all; empty if nothing was.
  std::string Summary() const;

 private:
  mutable Mutex mu_;
  std::string first_path_ ABSL_GUARDED_BY(mu_);
  int first_error_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// A file for workers' output. Output that cannot be written (a full disk, a file system that went
// away) is lost. Every later Write tries again, and a line in the file then says how many bytes are
// missing there.
//
// Created on one thread, then belongs to another, that of an OutputWriter.
class LogFile {
 public:
  // Creates the file, which must not exist, and its directory. If that fails, Write tries again.
  LogFile(std::string path, Rotation rotation, std::shared_ptr<LogLosses> losses);

  void Write(absl::string_view bytes);

  const std::string& path() const { return path_; }

 private:
  // Sets `error_` if it fails.
  void Open();
  // Returns 0 or the errno.
  int MoveAside();
  bool SayWhatIsMissing();
  void Rotate();
  // Both return how much was written, and set `error_` if that was not all.
  size_t WriteAll(absl::string_view bytes);
  size_t WriteRotating(absl::string_view bytes);

  const std::string path_;
  const Rotation rotation_;
  const std::shared_ptr<LogLosses> losses_;
  UniqueFd fd_;
  size_t size_ = 0;
  bool mid_line_ = false;
  bool full_ = false;   // The file at `path_` is ours, and is still to be moved aside.
  size_t missing_ = 0;  // Bytes lost since the last successful write.
  int error_ = 0;       // Why the last write failed.
};

}  // namespace hlaunch
