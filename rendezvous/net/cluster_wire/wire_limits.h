// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>

#include "proto/base/clock.h"

// The limits that each end of the wire sets to the other.

namespace hlaunch {

inline constexpr Duration kHandshakePatience = std::chrono::seconds(10);
// Time for a stranger to ask, and then once more to take the answer and leave.
inline constexpr Duration kStrangerPatience = std::chrono::seconds(10);
inline constexpr Duration kPingEvery = std::chrono::seconds(2);
inline constexpr Duration kSilence = std::chrono::seconds(10);  // Then the connection is closed.
// A timer that fires this late shows that this process stood still and has read nothing meanwhile.
inline constexpr Duration kOwnPause = std::chrono::seconds(1);

// At most this many connections without a certificate at the same time, in all and from one address
// (OfOne). If all hosts of a cluster behind one address connect at once, some of them must connect
// a second time.
inline constexpr size_t kMostHandshakes = 256;
inline constexpr size_t kMostHandshakesOfOne = 32;
inline constexpr size_t kMostStrangers = 64;
inline constexpr size_t kMostStrangersOfOne = 8;

// A host pauses at most this long before it connects again: at first, and after many failures.
inline constexpr Duration kFirstRetry = std::chrono::milliseconds(200);
inline constexpr Duration kLastRetry = std::chrono::seconds(2);
inline constexpr Duration kConnectPatience = std::chrono::seconds(3);  // For each address.
inline constexpr Duration kLookupPatience = std::chrono::seconds(10);

}  // namespace hlaunch
