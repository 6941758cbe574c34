// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/worker/taken_signals.h"
#include "launcher/job/hosting.h"
#include "proto/base/clock.h"
#include "rendezvous/listening/lookup.h"

namespace hlaunch {

// The resolver's first answer: waits for it until one of `named` is pending, at most `patience`.
//
// Errors: as ResolveHost, and Unavailable where no answer came in time.
Resolved FirstAnswer(Lookup& lookup, const SignalNumbers& named, Duration patience);

}  // namespace hlaunch
