// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/process_mapping.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// An MPICH client has room for this many bytes, with the lengths that PmiNode tells it: a longer
// text crashes the client.
constexpr size_t kMost = 673;

}  // namespace

std::string ProcessMapping(const std::vector<int>& nprocs) {
  std::string text = "(vector";
  for (size_t first = 0; first < nprocs.size();) {
    size_t end = first + 1;
    while (end < nprocs.size() && nprocs[end] == nprocs[first]) ++end;
    absl::StrAppend(&text, ",(", first, ",", end - first, ",", nprocs[first], ")");
    first = end;
  }
  text.push_back(')');
  return text.size() > kMost ? "" : text;
}

}  // namespace hlaunch
