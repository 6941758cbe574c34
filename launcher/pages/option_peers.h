// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/types/span.h"

namespace hlaunch {

// What an option of hlaunch is beside those of torchrun 2.14 and mpirun, for the page of options.
// Programs that run jobs do not need it.
struct OptionPeer {
  const char* name;      // Of the option, as in OptionTable().
  const char* torchrun;  // In words, which may be Markdown.
  const char* mpirun;    // Empty: it has nothing of the kind.
};

// One for each option of OptionTable(), which a test checks.
absl::Span<const OptionPeer> OptionPeers();

}  // namespace hlaunch
