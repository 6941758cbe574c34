// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/values/round.h"

// Finds, among ranks that all waited in vain, those that did something else than most. Pure: uses
// their tracebacks, but no clock.

namespace hlaunch {

// The places in the code at which ranks waited. A value.
struct DifferentPlaces {
  size_t index = 0;  // Index of a failure: the first of the smallest group.
  std::string did;  // "waited in t.py:37 `dist.recv(x)`, ranks 0, 2 in t.py:27 `…`", in one line.
};

// Compares the places in the user's own code at which `failures` ended. Returns nothing if they all
// ended at the same place, or if one of them has no traceback with such a place.
std::optional<DifferentPlaces> ComparePlaces(const std::vector<WorkerFailure>& failures);

// Returns whether a line or a path of a Python traceback belongs to the user's own code, not to
// Python, to a package or to hlaunch, which may be installed anywhere.
bool IsOwnCode(absl::string_view frame);

}  // namespace hlaunch
