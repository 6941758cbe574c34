// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hlaunch {

// What the agent and a fork server, or a fork of it, say to each other: words, as python_side.cc
// describes them.
using ForkMessage = std::vector<std::string>;

// The most descriptors that travel with one message; the kernel takes 253.
inline constexpr size_t kMostSentDescriptors = 128;

// A message as it is sent: its length in four bytes, then words that end with a zero byte. Pure.
std::string Packed(const ForkMessage& words);

// Removes a whole message from the start of `text`; unset if there is none yet. A message that is
// too long to be one of ours is "?".
std::optional<ForkMessage> TakeMessage(std::string& text);

// Sends `text` with `fds`, at most kMostSentDescriptors, which travel with its first byte. Never
// waits: returns false if the socket does not take all of it now.
bool SendAtOnce(int socket, absl::string_view text, absl::Span<const int> fds);

}  // namespace hlaunch
