// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm/process_group.h"
#include "proto/base/clock.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

// Joins a group whose ranks are nodes, as `address`, a literal of this host that the others reach.
// It is the network that is asked, also between nodes on one host; and whoever waits sleeps: there
// are workers to be left alone.
//
// Errors: as ProcessGroup::Create.
absl::StatusOr<std::unique_ptr<ProcessGroup>> JoinNodeGroup(std::shared_ptr<Store> store,
                                                            const std::string& name, Rank rank,
                                                            int size, const std::string& address,
                                                            Duration timeout);

}  // namespace hlaunch
