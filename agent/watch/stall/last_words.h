// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Watches what the workers of one round write to stderr before they end. A worker that has given up
// may take many seconds to exit. Until then nothing else tells it from a worker for which others
// wait in vain.
//
// Belongs to the loop thread.
class LastWords {
 public:
  using Reader = std::function<void(absl::string_view)>;
  // Returns the local ranks of live workers that have given up, see HasGivenUp.
  using Look = std::function<std::vector<int>()>;
  using Tell = std::function<void(std::vector<int>)>;

  // `look` is called soon after a worker has written about an exception. `tell` is called with what
  // `look` returned, if that has changed. Both are called from the loop. `loop` outlives this
  // object.
  LastWords(asio::io_context& loop, Look look, Tell tell);
  // After this, neither is called any more.
  ~LastWords();

  // Returns a reader that takes every byte of a worker's stderr and passes it to `next`, if that is
  // set. The reader may outlive this object.
  Reader Read(Reader next);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace hlaunch
