// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm/process_group.h"
#include "proto/base/clock.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// Joins a group whose ranks are nodes. `address` is a literal of this host that the others reach.
// Nodes on the same host use the network too, because the network is what is measured. Waiting
// ranks sleep instead of spinning, so that they do not disturb workers.
//
// Errors: as ProcessGroup::Create.
absl::StatusOr<std::unique_ptr<ProcessGroup>> JoinNodeGroup(std::shared_ptr<Store> store,
                                                            const std::string& name, Rank rank,
                                                            int size, const std::string& address,
                                                            Duration timeout);

}  // namespace hlaunch
