// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// What Kubernetes shows as the reason of a container's end: a file that the kubelet makes and
// reads.

namespace hlaunch {

inline constexpr char kTerminationLog[] =
    "/dev/termination-log";                           // terminationMessagePath's default.
inline constexpr size_t kMaxTerminationBytes = 4096;  // The kubelet reads no more.

// `lines` as far as they fit: the first lines are the cause. Whole lines, but for a first one that
// is too long. Pure.
std::string TerminationMessage(const std::vector<std::string>& lines);

// Puts `message` into the file `path`, if there is one; makes none, and follows no link. Returns
// why it could not, in a line; empty: it did, or there is no such file and `path` is
// kTerminationLog.
std::string KeepTerminationMessage(const std::string& path, absl::string_view message);

}  // namespace hlaunch
