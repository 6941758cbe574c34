// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "proto/base/unique_fd.h"

namespace hlaunch {

// What modules print to stdout and stderr while a fork server imports them: each rank prints it.
//
// Belongs to one thread.
class PrintedImports {
 public:
  // Opens a pipe for each stream and returns the ends to write to; invalid, with errno set, if
  // there are none.
  std::array<UniqueFd, 2> Open();

  // Takes what has been printed until now.
  void Drain();

  // `module` begins to print; a second call for it changes nothing.
  void Begin(const std::string& module);
  // Forgets what `module` printed if it was the last to begin.
  void Forget(const std::string& module);

  const std::string& out() const { return streams_[0].text; }
  const std::string& err() const { return streams_[1].text; }
  // Whether it is more than the pipe of any rank holds.
  bool too_much() const;

 private:
  struct Stream {
    UniqueFd read_end;
    std::string text;
    size_t before_module = 0;
  };

  std::array<Stream, 2> streams_;
  std::string module_;
};

}  // namespace hlaunch
