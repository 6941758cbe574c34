// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/workers/worker/taken_signals.h"
#include "launcher/job/spec/hosting.h"
#include "proto/base/clock.h"
#include "rendezvous/net/socket/lookup.h"

namespace hlaunch {

// Waits for the resolver's first answer, until one of the signals `named` is pending and at most
// for `patience`.
//
// Errors: as ResolveHost; Unavailable - no answer came in time.
Resolved FirstAnswer(Lookup& lookup, const SignalNumbers& named, Duration patience);

}  // namespace hlaunch
