// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Turns gRPC's text about a failed connection into words for people: the kernel's words if the text
// holds them, else one of a few sentences. Returns unknown text as it is. Pure.
std::string PlainTrouble(absl::string_view text);

// The words for a call that has tried several times in vain: the trouble of its last try. A try
// whose time was up has learned no cause, so the cause that an earlier try met stands before it.
// For one thread.
class CallTrouble {
 public:
  // A try has failed. `late`: its time was up.
  void Learn(std::string trouble, bool late);

  // Returns, for example, "Connection refused, then no answer in time"; "no time left" if there was
  // no try.
  std::string Words() const;

 private:
  std::string cause_;  // What the last try that had time has met; empty if none had.
  std::string late_;   // The trouble of the last try if its time was up; else empty.
};

}  // namespace hlaunch
