// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_ids.h"

#include <cstdint>

#include "proto/contract/ids.h"

namespace hlaunch {
namespace {

int NewPmiId() {
  constexpr uint64_t kPositive = 0x7fffffff;
  while (true) {
    if (const int id = static_cast<int>(NewIncarnation() & kPositive); id != 0) return id;
  }
}

}  // namespace

int PmiIds::Give(int local_rank) {
  while (true) {
    const int id = NewPmiId();
    if (owners_.emplace(id, Owner{local_rank}).second) return id;
  }
}

PmiIds::Verdict PmiIds::Take(int id) {
  const auto found = owners_.find(id);
  if (closed() || found == owners_.end()) {
    ++wrong_;
    return {PmiGuest::kStranger, -1};
  }
  Owner& owner = found->second;
  if (owner.has_come) return {PmiGuest::kAgain, -1};
  owner.has_come = true;
  return {PmiGuest::kWorker, owner.local_rank};
}

}  // namespace hlaunch
