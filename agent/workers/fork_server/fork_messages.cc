// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/fork_messages.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxMessage = 1 << 20;

}  // namespace

std::string Packed(const ForkMessage& words) {
  std::string text(4, '\0');
  for (const std::string& word : words) {
    text.append(word);
    text.push_back('\0');
  }
  const size_t size = text.size() - 4;
  for (size_t i = 0; i < 4; ++i) text[i] = static_cast<char>(size >> (8 * i) & 0xff);
  return text;
}

std::optional<ForkMessage> TakeMessage(std::string& text) {
  if (text.size() < 4) return std::nullopt;
  size_t size = 0;
  for (size_t i = 0; i < 4; ++i)
    size |= static_cast<size_t>(static_cast<uint8_t>(text[i])) << 8 * i;
  if (size > kMaxMessage) return ForkMessage{"?"};
  if (text.size() < 4 + size) return std::nullopt;
  ForkMessage words = absl::StrSplit(text.substr(4, size), '\0');
  words.pop_back();  // Behind the last zero byte.
  text.erase(0, 4 + size);
  return words;
}

bool SendAtOnce(int socket, absl::string_view text, absl::Span<const int> fds) {
  HLAUNCH_CHECK(fds.size() <= kMostSentDescriptors);
  alignas(cmsghdr) char control[CMSG_SPACE(kMostSentDescriptors * sizeof(int))] = {};
  bool first = !fds.empty();
  while (!text.empty()) {
    iovec part = {const_cast<char*>(text.data()), text.size()};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (first) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
    }
    const ssize_t n = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      first = false;
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace hlaunch
