// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// Overwrites `secret` wherever it is in the command line of this process, which other users of the
// host can read. Copies that were taken before stay.
void WipeFromArguments(int argc, char** argv, absl::string_view secret);

// Reads the first word of a file, or of stdin if `file` is "-": a join token is one word.
//
// Errors:
//   InvalidArgument - the file cannot be read, or its word is missing or too long; the message
//       names the file.
absl::StatusOr<std::string> ReadTokenOf(const std::string& file);

}  // namespace hlaunch
