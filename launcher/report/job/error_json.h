// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "rendezvous/round/values/round.h"

namespace hlaunch {

// Returns the first failure in the form in which torch's @record writes one, for a reader of
// TORCHELASTIC_ERROR_FILE. Pure. Requires: `outcome` has a failure.
std::string ErrorJson(const Outcome& outcome);

}  // namespace hlaunch
