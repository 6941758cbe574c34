// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/node/host_end.h"

#include "proto/contract/exit_code.h"

namespace hlaunch {

bool EndsWithHost(int exit_code) { return IsSignalExit(exit_code) || exit_code == kExitTimeout; }

}  // namespace hlaunch
