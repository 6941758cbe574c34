// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/round.h"

// The decision which of several ranks that all waited in vain did something else than most. Pure:
// their tracebacks, no clock.

namespace hlaunch {

// Who waited where. A value.
struct DifferentPlaces {
  size_t index = 0;  // In the failures: the first of those that are fewest.
  std::string did;  // "waited in t.py:37 `dist.recv(x)`, ranks 0, 2 in t.py:27 `…`", in one line.
};

// Compares where in the user's own code `failures` ended. Nothing if that is the same place for
// all, or one of them left no traceback.
std::optional<DifferentPlaces> ComparePlaces(const std::vector<WorkerFailure>& failures);

// Whether a line or a path of a Python traceback is of the person's own code rather than of Python,
// of a package, or of hlaunch's, which may lie anywhere.
bool IsOwnCode(absl::string_view frame);

}  // namespace hlaunch
