// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "rendezvous/round/round.h"

// Why a program ended, by the last lines of its stderr. Pure: text only.

namespace hlaunch {

// The line of `tail` that tells it of a program that raised no exception, in the words of the
// program's loader, its shell, Python before its first line, a command line's parser, or Rust; of a
// Python that was misled by PYTHONHOME where it looked. Without control characters; empty if none
// does.
std::string ComplaintIn(absl::string_view tail);

// The worker's exception, see ExceptionOf, else its complaint; empty if it died without a word.
std::string OwnWords(const WorkerFailure& failure);

}  // namespace hlaunch
