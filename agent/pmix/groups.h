// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <pmix_server.h>

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "agent/pmix/group_parts.h"

namespace hlaunch {

// What is asked for with a group that ranks make.
struct GroupWish {
  bool number = false;  // A number of its own.
  bool meet = false;    // That all have come before any of them goes on.
  bool here = false;    // That no other node is asked.
  std::string own;      // What the ranks of this node say.

  bool NeedsOthers() const { return (number || meet) && !here; }
};
GroupWish GroupWishOf(const pmix_info_t infos[], size_t count);

// Gives libpmix the answer: `members` are those of the group, as it has named them.
void AnswerGroup(const GroupAnswer& answer, const GroupWish& wish, const pmix_proc_t members[],
                 size_t count, pmix_info_cbfunc_t callback, void* context);

// Whether the libpmix that calls itself `version` ("OpenPMIx 5.0.11, repo rev: ...") carries all
// that Open MPI says of a group: 5 does, 4 loses a part.
bool ServesGroups(absl::string_view version);

}  // namespace hlaunch
