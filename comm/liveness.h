// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>

namespace hlaunch {

// Tells the hlaunch that started this process that it lives, at HLAUNCH_HEARTBEAT; see
// agent/stall/heartbeats.h for the words. step < 0: none. timeout_s: until the next call; 0 or
// less: as the job's --heartbeat-timeout says; infinity: as long as it likes. False: nobody
// listens, or what was said was lost.
//
// Thread-safe; also after a fork. Never waits, but up to a second where a time that was given
// would be lost.
bool SendHeartbeat(int64_t step, double timeout_s) noexcept;

}  // namespace hlaunch
