// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/client/cluster_failure.h"

#include <cstdio>

#include "launcher/text/exit_codes.h"
#include "launcher/text/printable.h"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {

int FailToAskCluster(const absl::Status& status) {
  LogError(PrintableLine(status.message()));
  if (absl::IsInvalidArgument(status)) return kExitUsage;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return kExitBadEndpoint;
  return absl::IsInternal(status) ? kExitInternal : kExitRefused;
}

int PrintOfCluster(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return FlushStdout();
}

}  // namespace hlaunch
