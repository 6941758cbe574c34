// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <list>
#include <memory>

#include "absl/status/statusor.h"
#include "agent/workers/input/stdin_reader.h"
#include "asio/io_context.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Gives each worker all data of this process's stdin, from the beginning to the end. The data is
// kept in a file without a name. So a worker that reads slowly, or not at all, holds up no other
// worker, and workers of a later round read the same data again.
//
// Belongs to the loop's thread; `loop` outlives it.
class StdinCopies {
 public:
  // Errors:
  //   ResourceExhausted - no such file can be made.
  static absl::StatusOr<std::unique_ptr<StdinCopies>> Open(asio::io_context& loop);
  ~StdinCopies();

  // Returns the descriptor that one worker reads.
  //
  // Errors:
  //   ResourceExhausted - out of descriptors.
  absl::StatusOr<UniqueFd> Link();

  // Forgets the workers that it served. What still reads their descriptors finds the end there.
  void Clear();

 private:
  struct Copy;
  StdinCopies(asio::io_context& loop, UniqueFd kept);
  bool Keep(const std::string& bytes);
  void Feed(const std::shared_ptr<Copy>& copy);

  asio::io_context& loop_;
  const UniqueFd kept_;
  bool ended_ = false;
  std::list<std::shared_ptr<Copy>> copies_;  // Nothing else keeps a copy.
  StdinReader reader_;
};

}  // namespace hlaunch
