// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// Overwrites `secret` wherever it stands in the command line of this process, which the host's
// other users can read. Copies that were taken stay.
void WipeFromArguments(int argc, char** argv, absl::string_view secret);

// The first word of a file, of stdin if it is "-": a join token is one.
//
// Errors:
//   InvalidArgument - it cannot be read, or holds no word or too long a one; the message names it.
absl::StatusOr<std::string> ReadTokenOf(const std::string& file);

}  // namespace hlaunch
