// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// One question to torch's control server in a worker, which answers in time or not at all, and with
// at most 8 MiB.
//
// Belongs to the loop thread. Destruction gives up without a word.
class TapRequest {
 public:
  static constexpr Duration kLimit = std::chrono::seconds(5);

  // `handler` is what is asked: "fr_trace_json". `done` is called once, from the loop and never
  // from within the constructor; it may destroy the request.
  //
  //   Unavailable - there is no such server, or it has ended.
  //   DeadlineExceeded - it does not answer.
  //   NotFound - it does not know the question.
  //   InvalidArgument - the answer is nonsense, or too long.
  TapRequest(asio::io_context& loop, const std::string& socket, const std::string& handler,
             std::function<void(absl::StatusOr<std::string>)> done, Duration limit = kLimit);
  ~TapRequest();

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with what is under way in the loop.
};

// The body of a whole answer. Pure.
//
// Errors: NotFound, InvalidArgument - as above.
absl::StatusOr<std::string> BodyOf(absl::string_view answer);

}  // namespace hlaunch
