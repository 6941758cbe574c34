// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/types/span.h"

namespace hlaunch {

// How an option of hlaunch compares with the options of torchrun 2.14 and mpirun, for the page of
// options. Programs that run jobs do not need it.
struct OptionPeer {
  const char* name;      // The option's name in OptionTable().
  const char* torchrun;  // Text, which may contain Markdown.
  const char* mpirun;    // The same; empty if mpirun has nothing like it.
};

// Returns one entry for each option of OptionTable(), which a test checks.
absl::Span<const OptionPeer> OptionPeers();

}  // namespace hlaunch
