// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/cluster/envelope.h"

namespace hlaunch {

// The questions that the head asks hosts, until their answers come.
//
// Belongs to one thread.
class HeadRelay {
 public:
  static constexpr size_t kMostOfAHost = 4096;
  static constexpr Duration kPatience = std::chrono::seconds(35);  // A log may wait for 20 s.

  using Send = std::function<void(uint64_t peer, const Envelope&)>;
  // Errors, besides the host's own:
  //   Unavailable - the host left before it answered.
  //   DeadlineExceeded - the host did not answer in time.
  //   ResourceExhausted - the host has too many unanswered questions.
  using Done = std::function<void(const absl::StatusOr<nlohmann::json>&)>;

  explicit HeadRelay(Send send) : send_(std::move(send)) {}

  // Calls `done` once, maybe before this returns. If `bounded`, the question counts towards
  // kMostOfAHost.
  void Ask(uint64_t peer, const std::string& host, absl::string_view verb, nlohmann::json body,
           bool bounded, Instant now, Done done);
  void TakeAnswer(uint64_t peer, const Envelope& answer);
  void Left(uint64_t peer);
  void Tick(Instant now);

 private:
  struct Question {
    uint64_t peer = 0;
    std::string host;
    bool bounded = false;
    Instant until;
    Done done;
  };
  void Finish(uint64_t id, const absl::StatusOr<nlohmann::json>& answer);

  const Send send_;
  std::map<uint64_t, Question> questions_;  // By id, which is also their order in time.
  std::map<uint64_t, size_t> bounded_;      // How many bounded questions each peer has.
  uint64_t last_id_ = 0;
};

}  // namespace hlaunch
