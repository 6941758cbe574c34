// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// `hlaunch token --for-job ID`: prints a token for one job of the service whose token this host
// has; with --for-page, the password of the service's status pages. Returns the exit code.
int PrintJobToken(int argc, char** argv);

}  // namespace hlaunch
