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

// Where a cloud tells its machine that it will be taken away. A value.
struct NoticeUrl {
  std::string address;  // A literal.
  uint16_t port = 80;
  std::string target;  // "/latest/meta-data/spot/instance-action"
};

// "http://169.254.169.254/latest/…". Pure.
//
// Errors:
//   InvalidArgument - it is no http URL whose host is an address.
absl::StatusOr<NoticeUrl> ParseNoticeUrl(absl::string_view text);

// Where the notice that this node will be gone, or is not to be used any more, comes from.
struct DrainSources {
  std::string file;  // It is there; its first line is why. Empty: none.
  std::optional<NoticeUrl> url;
};

// What an HTTP answer says: why the node will be gone; empty: it stays; nothing: it says neither.
// Pure.
std::optional<std::string> ReadNotice(absl::string_view answer);

// Looks at a file each turn and at a URL every five.
//
// Belongs to the loop thread, where its callback is called.
class DrainWatch {
 public:
  static constexpr Duration kTurn = std::chrono::seconds(1);

  // `on_change` is told why the node is drained each time that changes; empty: it is not.
  DrainWatch(asio::io_context& loop, DrainSources sources,
             std::function<void(std::string reason)> on_change, Duration turn = kTurn);
  ~DrainWatch();

  void Begin();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace hlaunch
