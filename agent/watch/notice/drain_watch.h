// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The URL where a cloud announces that it will take the machine away. A value.
struct NoticeUrl {
  std::string address;  // An address literal.
  uint16_t port = 80;
  std::string target;  // "/latest/meta-data/spot/instance-action"
};

// Parses a URL like "http://169.254.169.254/latest/…". Pure.
//
// Errors:
//   InvalidArgument - `text` is not an http URL whose host is an address.
absl::StatusOr<NoticeUrl> ParseNoticeUrl(absl::string_view text);

// The sources of a notice that this node will be gone, or must not be used any more.
struct DrainSources {
  std::string file;  // If this file exists, its first line is the reason. Empty for no file.
  std::optional<NoticeUrl> url;
};

// Reads an HTTP answer. Returns why the node will be gone, an empty text if the node stays, or
// nothing if the answer says neither. Pure.
std::optional<std::string> ReadNotice(absl::string_view answer);

// Looks at the file every turn and at the URL every fifth turn.
//
// Belongs to the loop thread and calls its callback there.
class DrainWatch {
 public:
  static constexpr Duration kTurn = std::chrono::seconds(1);

  // `on_change` is called with the reason for the drain whenever it changes; an empty reason ends
  // the drain.
  DrainWatch(asio::io_context& loop, DrainSources sources,
             std::function<void(std::string reason)> on_change, Duration turn = kTurn);
  ~DrainWatch();

  void Begin();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace hlaunch
