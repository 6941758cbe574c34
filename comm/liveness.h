// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>

namespace hlaunch {

// Tells the hlaunch that started this process that the process lives, at the socket
// HLAUNCH_HEARTBEAT; see agent/watch/stall/heartbeats.h for the text. A `step` below 0 is not sent.
// `timeout_s` is the time until the next call, in seconds: 0 or less means the job's
// --heartbeat-timeout, infinity means no limit. Returns false if hlaunch does not listen, or the
// message was lost.
//
// Thread-safe, also after a fork. Does not wait, except up to a second where a given timeout would
// be lost otherwise.
bool SendHeartbeat(int64_t step, double timeout_s) noexcept;

}  // namespace hlaunch
