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

// Looks at what the workers of one round say on stderr before they end. A worker that has given up
// may take many seconds to exit, and until then nothing else tells it from one that others miss.
//
// Belongs to the loop thread.
class LastWords {
 public:
  using Reader = std::function<void(absl::string_view)>;
  // Returns the local ranks of workers that live and have given up, see HasGivenUp.
  using Look = std::function<std::vector<int>()>;
  using Tell = std::function<void(std::vector<int>)>;

  // `look` is called soon after a worker has written of an exception, and `tell` with what it
  // returns, once that has changed; both from the loop. `loop` outlives this.
  LastWords(asio::io_context& loop, Look look, Tell tell);
  // Neither is called any more.
  ~LastWords();

  // Sees every byte of a worker's stderr, and passes it to `next` if that is there. May outlive
  // this.
  Reader Read(Reader next);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace hlaunch
