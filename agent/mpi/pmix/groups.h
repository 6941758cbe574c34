// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <pmix_server.h>

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/mpi/pmix/group_parts.h"

namespace hlaunch {

// The options of a group that ranks make.
struct GroupWish {
  bool number = false;  // The group gets a number of its own.
  bool meet = false;    // All ranks have to come before any of them goes on.
  bool here = false;    // No other node is asked.
  std::string own;      // The data of this node's ranks.

  bool NeedsOthers() const { return (number || meet) && !here; }
};
GroupWish GroupWishOf(const pmix_info_t infos[], size_t count);

// Gives libpmix the answer; `members` are the group's members as libpmix named them.
void AnswerGroup(const GroupAnswer& answer, const GroupWish& wish, const pmix_proc_t members[],
                 size_t count, pmix_info_cbfunc_t callback, void* context);

// True if the libpmix with this `version` text ("OpenPMIx 5.0.11, repo rev: ...") passes on all
// data that Open MPI gives for a group: version 5 does, version 4 loses a part.
bool ServesGroups(absl::string_view version);

}  // namespace hlaunch
