// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/node_group.h"

#include <utility>

namespace hlaunch {
namespace {

constexpr int kNoSpinning = 1 << 16;  // More ranks than any host has cores.

}  // namespace

absl::StatusOr<std::unique_ptr<ProcessGroup>> JoinNodeGroup(std::shared_ptr<Store> store,
                                                            const std::string& name, Rank rank,
                                                            int size, const std::string& address,
                                                            Duration timeout) {
  GroupOptions options;
  options.name = name;
  options.timeout = timeout;
  options.address = address;
  options.shared_memory = false;
  options.local_ranks = kNoSpinning;
  return ProcessGroup::Create(std::move(store), rank, size, options);
}

}  // namespace hlaunch
