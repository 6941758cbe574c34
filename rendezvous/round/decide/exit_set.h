// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <bitset>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// The traits of a failure that an ExitSet looks at. A value.
struct FailureTraits {
  // The code that the job would end with: the worker's own, 128 + signal, or hlaunch's.
  int exit_code = 0;
  int signal = 0;     // The signal that ended a worker, else 0.
  bool node = false;  // A node was lost or has left.
  bool hang = false;  // The worker made no progress and was ended for that.
  bool oom = false;   // The kernel ended the worker for lack of memory.
};

// Returns the word for `failure`: "SIGKILL", "exit code 3", "oom", "hang", "node".
std::string NameOf(const FailureTraits& failure);

// The failures that an option such as --end-on names. A value.
class ExitSet {
 public:
  // Parses "1,64-78,SIGKILL,oom,hang,node,any": exit codes from 1 to 255 and ranges of them,
  // signals, kinds of failures. A signal is the same as the code 128 + its number. An empty text
  // names none.
  //
  // Errors:
  //   InvalidArgument - a word is none of these; the message names it, and what is allowed.
  static absl::StatusOr<ExitSet> Parse(absl::string_view text);

  bool empty() const { return codes_.none() && !oom_ && !hang_ && !node_ && !any_; }

  // Returns the word by which `failure` is in the set: "exit code 75", "SIGKILL", "oom". Empty if
  // it is not in the set.
  std::string WordOf(const FailureTraits& failure) const;

  // Returns whether all that `other` names is in this set. Requires: neither is empty.
  bool Covers(const ExitSet& other) const;

 private:
  bool Take(absl::string_view word);

  std::bitset<256> codes_;
  bool oom_ = false, hang_ = false, node_ = false, any_ = false;
};

}  // namespace hlaunch
