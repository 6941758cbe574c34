// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

// How a command becomes `hlaunch-agent`, which asks a rendezvous, and hands over a secret.

namespace hlaunch {

// Replaces this process by `hlaunch-agent` with these words, of which the first is the program's
// name. Returns only if that fails, with an exit code.
using BecomeAgentFn = std::function<int(const std::vector<std::string>& words)>;

// Puts `secret` into an unnamed file that only this user can read.
//
// Errors:
//   ResourceExhausted - the file cannot be made.
absl::StatusOr<UniqueFd> SecretFile(const std::string& secret);

// The path at which this process, and the program that replaces it, read the file.
std::string PathOfSecret(const UniqueFd& file);

}  // namespace hlaunch
