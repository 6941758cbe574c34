// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <bitset>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// What an ExitSet can know of a failure. A value.
struct FailureTraits {
  int exit_code = 0;  // That the job would end with: the worker's own, 128 + signal, or hlaunch's.
  int signal = 0;     // That ended a worker, else 0.
  bool node = false;  // A node was lost or has left.
  bool hang = false;  // The worker did not go on, and was ended for it.
  bool oom = false;   // The kernel ended it for lack of memory.
};

// The word for it: "SIGKILL", "exit code 3", "oom", "hang", "node".
std::string NameOf(const FailureTraits& failure);

// The failures that an option such as --end-on names. A value.
class ExitSet {
 public:
  // "1,64-78,SIGKILL,oom,hang,node,any": exit codes from 1 to 255 and ranges of them, signals,
  // kinds of failures. A signal is the same as the code 128 + its number. Empty: none.
  //
  // Errors:
  //   InvalidArgument - names the word that is none of these, and what they are.
  static absl::StatusOr<ExitSet> Parse(absl::string_view text);

  bool empty() const { return codes_.none() && !oom_ && !hang_ && !node_ && !any_; }

  // Whether `failure` is in it, and by what: "exit code 75", "SIGKILL", "oom". Empty: it is not.
  std::string WordOf(const FailureTraits& failure) const;

  // Whether all that `other` names is in this set. Requires: neither is empty.
  bool Covers(const ExitSet& other) const;

 private:
  bool Take(absl::string_view word);

  std::bitset<256> codes_;
  bool oom_ = false, hang_ = false, node_ = false, any_ = false;
};

}  // namespace hlaunch
