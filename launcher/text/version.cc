// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/version.h"

#include "absl/strings/str_cat.h"
#include "proto/base/release.h"

namespace hlaunch {

std::string VersionText() {
  return absl::StrCat(kRelease, " (commit ", kCommit, ", ", HLAUNCH_BUILD, ")");
}

}  // namespace hlaunch
