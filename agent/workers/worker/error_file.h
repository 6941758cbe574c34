// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What a worker wrote to TORCHELASTIC_ERROR_FILE before it died. A value.
struct ErrorFile {
  std::string message;    // The exception, "<Type>: <text>", at most 4 KiB of its head.
  std::string traceback;  // The last kMaxTracebackBytes at most; empty if there is none.
};

// Parses both forms that readers of torch accept: {"message": {"message": …, "extraInfo":
// {"py_callstack": …}}}, which torch's @record writes, and {"message": "…"}. The end of the file
// may be cut off. Pure; `json` may be anything.
ErrorFile ParseErrorFile(absl::string_view json);

// Returns at most `limit` bytes of `path`; empty if there is no such file. Never blocks: a file
// that is not a regular one counts as absent.
std::string ReadErrorFile(const std::string& path, size_t limit);

}  // namespace hlaunch
