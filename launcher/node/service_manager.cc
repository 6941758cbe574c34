// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "asio/io_context.hpp"
#include "proto/base/terminal_text.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr timeval kSendTimeout = {1, 0};

// The protocol of sd_notify(3): one datagram of lines.
void Send(const std::string& name, const std::string& text) {
  sockaddr_un address = {};
  if (name.empty() || name.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  ::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), size);
}

// Makes text that systemctl can show in one line.
std::string OneLine(absl::string_view text) {
  return TerminalText(absl::StrReplaceAll(text, {{"\n", " "}}));
}

std::string Extend(Duration at_most) {
  return absl::StrCat("EXTEND_TIMEOUT_USEC=",
                      std::chrono::duration_cast<std::chrono::microseconds>(at_most).count(), "\n");
}

}  // namespace

NotifyPlace FindNotifyPlace(const Environment& environment, pid_t self, pid_t keeper) {
  NotifyPlace place;
  const std::string socket = environment.Get(kEnvNotifySocket);
  if (socket.size() < 2 || (socket[0] != '/' && socket[0] != '@')) return place;
  place.socket = socket;
  const std::string whose = environment.Get(kEnvWatchdogPid);
  if (!whose.empty() && whose != absl::StrCat(self) && whose != absl::StrCat(keeper)) return place;
  int64_t micros = 0;
  if (absl::SimpleAtoi(environment.Get(kEnvWatchdogMicros), &micros) && micros > 0) {
    place.watchdog = std::chrono::microseconds(micros);
  }
  return place;
}

ServiceManager::ServiceManager(asio::io_context& loop, NotifyPlace place)
    : place_(std::move(place)), alive_(loop) {}

void ServiceManager::Ready(absl::string_view status) {
  Send(place_.socket, absl::StrCat("READY=1\nSTATUS=", OneLine(status), "\n"));
  if (place_.watchdog > Duration::zero()) SayAlive();
}

void ServiceManager::Status(absl::string_view status) const {
  Send(place_.socket, absl::StrCat("STATUS=", OneLine(status), "\n"));
}

void ServiceManager::Stopping(absl::string_view status, Duration at_most) const {
  Send(place_.socket, absl::StrCat("STOPPING=1\nSTATUS=", OneLine(status), "\n", Extend(at_most)));
}

void ServiceManager::MayTake(Duration at_most) const { Send(place_.socket, Extend(at_most)); }

void ServiceManager::SayAlive() {
  Send(place_.socket, "WATCHDOG=1\n");
  alive_.expires_after(place_.watchdog / 2);
  alive_.async_wait([this](const asio::error_code& error) {
    if (!error) SayAlive();
  });
}

}  // namespace hlaunch
