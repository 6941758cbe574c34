// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What a worker wrote to TORCHELASTIC_ERROR_FILE before it died. A value.
struct ErrorFile {
  std::string message;    // The exception, "<Type>: <text>", at most 4 KiB of its head.
  std::string traceback;  // Its end, at most kMaxTracebackBytes; empty: there is none.
};

// Accepts, also where the end of the file is cut off, both forms that readers of torch accept:
// {"message": {"message": …, "extraInfo":
// {"py_callstack": …}}} as torch's @record writes it, and {"message": "…"}. Pure; `json` may be
// anything.
ErrorFile ParseErrorFile(absl::string_view json);

// The content of `path`, at most `limit` bytes of it; empty if there is no such file. Never
// blocks: what is not a regular file counts as absent.
std::string ReadErrorFile(const std::string& path, size_t limit);

}  // namespace hlaunch
