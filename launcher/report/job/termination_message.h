// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The file in which Kubernetes expects the reason of a container's end. The kubelet makes and reads
// the file.

namespace hlaunch {

inline constexpr char kTerminationLog[] =
    "/dev/termination-log";                           // terminationMessagePath's default.
inline constexpr size_t kMaxTerminationBytes = 4096;  // The kubelet reads no more.

// Returns as many whole lines as fit; the first lines are the cause. Only a first line that is too
// long is cut. Pure.
std::string TerminationMessage(const std::vector<std::string>& lines);

// Writes `message` to the file `path` if the file exists. Makes no file and follows no link.
// Returns in one line why it failed; empty if it succeeded, or if `path` is kTerminationLog and
// there is no such file.
std::string KeepTerminationMessage(const std::string& path, absl::string_view message);

}  // namespace hlaunch
