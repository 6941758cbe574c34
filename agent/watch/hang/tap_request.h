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

// One question to torch's control server in a worker. The answer has a time limit, and has to be
// smaller than 8 MiB.
//
// Belongs to the loop thread. The destructor gives up and does not call `done`.
class TapRequest {
 public:
  static constexpr Duration kLimit = std::chrono::seconds(5);

  // `handler` is the question: "fr_trace_json"; if empty, which questions the server knows. `done`
  // is called once, from the loop and never by the constructor; it may destroy the request.
  //
  //   Unavailable - there is no such server, or it has ended.
  //   DeadlineExceeded - the server does not answer.
  //   NotFound - the server does not know the question.
  //   InvalidArgument - the answer is not HTTP.
  //   ResourceExhausted - the answer is too long.
  TapRequest(asio::io_context& loop, const std::string& socket, const std::string& handler,
             std::function<void(absl::StatusOr<std::string>)> done, Duration limit = kLimit);
  ~TapRequest();

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with handlers pending in the loop.
};

// The body of a complete answer. Pure.
//
// Errors: NotFound, InvalidArgument, ResourceExhausted - as above.
absl::StatusOr<std::string> BodyOf(absl::string_view answer);

}  // namespace hlaunch
