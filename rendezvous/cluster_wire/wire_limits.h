// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>

#include "proto/base/clock.h"

// What each end of the wire bears of the other one.

namespace hlaunch {

inline constexpr Duration kHandshakePatience = std::chrono::seconds(10);
// Of a stranger, to ask; and then, to take the answer and go.
inline constexpr Duration kStrangerPatience = std::chrono::seconds(10);
inline constexpr Duration kPingEvery = std::chrono::seconds(2);
inline constexpr Duration kSilence = std::chrono::seconds(10);  // Then a connection is over.
// A timer that comes so late says that this process stood still, and has read nothing meanwhile.
inline constexpr Duration kOwnPause = std::chrono::seconds(1);

// Of those who have shown no certificate, at the same time, and of one address. All hosts of a
// cluster behind one address may come at once; then some of them come a second time.
inline constexpr size_t kMostHandshakes = 256;
inline constexpr size_t kMostHandshakesOfOne = 32;
inline constexpr size_t kMostStrangers = 64;
inline constexpr size_t kMostStrangersOfOne = 8;

// A host connects again after a time between these two.
inline constexpr Duration kFirstRetry = std::chrono::milliseconds(200);
inline constexpr Duration kLastRetry = std::chrono::seconds(2);
inline constexpr Duration kConnectPatience = std::chrono::seconds(3);  // Of one address.
inline constexpr Duration kLookupPatience = std::chrono::seconds(10);

}  // namespace hlaunch
