// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

// systemd's journal in its native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL), which
// carries fields besides a line. All functions are thread-safe.

namespace hlaunch {

using JournalFields = std::vector<std::pair<std::string, std::string>>;

// Whether output on `fd` goes to the journal. `journal_stream` is the variable JOURNAL_STREAM, null
// if unset. It names a stream by device and inode, so a variable is not trusted if `fd` has been
// redirected since.
bool IsJournal(int fd, const char* journal_stream);

// The datagram to OpenJournal() for one entry. Pure.
std::string JournalEntry(const JournalFields& fields);

// A socket on which every write is one entry; invalid if no journal listens.
UniqueFd OpenJournal();

// Waits until the journal has read all that was written to `journal`, at most `limit`. Returns
// whether it has. The journal looks up the unit of a process (`journalctl -u`) when it reads the
// first entry of the process, and finds none once the process is gone.
bool AwaitJournal(int journal, Duration limit);

}  // namespace hlaunch
