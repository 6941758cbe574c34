// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// Finds why a program ended in what Python, C++ and CUDA write to its stderr. Pure.

namespace hlaunch {

// Torch's line before what a data loader or another process of the worker raised.
inline constexpr absl::string_view kOriginalTraceback =
    "Original Traceback (most recent call last):";
inline constexpr size_t kMaxMoreLines = 8;  // Of an exception's message.

// The lines of a stderr, without the "[rank3]: " that torch puts before them and without the margin
// of an exception group.
using StderrLines = std::vector<absl::string_view>;
StderrLines SplitStderr(absl::string_view text);

// The lines [begin, end) of one traceback. The line of the exception is `exception`; after it come
// the indented lines of its message.
struct TracebackBlock {
  size_t begin = 0;
  size_t exception = 0;
  size_t end = 0;
};

// Returns the last traceback, except for those of exceptions that Python ignored. If its head was
// cut off, or it is a syntax error without a head, returns what looks like the end of a traceback
// and the indented lines before it.
std::optional<TracebackBlock> LastTraceback(const StderrLines& lines);

// Returns that traceback. It reaches from the first line that is there to the exception. Keeps the
// last kMaxTracebackBytes. Empty if there is none.
std::string TracebackIn(absl::string_view text);

// Returns the traceback of the exception that ended a program which C++ aborted on its way out: a
// thread still ran, or CUDA told C++ the same error as Python. Empty if C++ aborted it for another
// reason, which UncaughtInCpp tells.
std::string TracebackBeforeAbort(absl::string_view text);

// Returns the exception that C++ last aborted the program for, such as "std::runtime_error: boom";
// empty if there is none.
std::string UncaughtInCpp(const StderrLines& lines);

// Returns `text` without empty lines and the stacks that torch's C++ writes after the reason.
std::string WithoutCppStacks(absl::string_view text);

// Returns the last assertion of CUDA's that failed, "a kernel's assertion failed: index < size
// (IndexKernel.cu:111)"; empty if there is none. Keeps 300 bytes of the condition and of the place.
std::string KernelAssertionIn(absl::string_view text);
inline constexpr absl::string_view kKernelAssertion = "a kernel's assertion failed: ";

// Returns the last whole lines of `text`, at most `max_bytes` bytes.
std::string LastLines(absl::string_view text, size_t max_bytes);

}  // namespace hlaunch
