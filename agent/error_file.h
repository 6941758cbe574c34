// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What a worker wrote to TORCHELASTIC_ERROR_FILE before it died: the exception in one line,
// "<Type>: <text>", or empty if `json` holds none. Accepts both forms that readers of torch
// accept: {"message": {"message": …}} as torch's @record writes it, and {"message": "…"}.
// Pure; `json` may be anything.
std::string ErrorFileMessage(absl::string_view json);

// The content of `path`, at most `limit` bytes of it; empty if there is no such file. Never
// blocks: what is not a regular file counts as absent.
std::string ReadErrorFile(const std::string& path, size_t limit);

}  // namespace hlaunch
