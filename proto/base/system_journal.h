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
// takes fields beside a line. All functions are thread-safe.

namespace hlaunch {

using JournalFields = std::vector<std::pair<std::string, std::string>>;

// Whether what is written to `fd` goes to the journal. `journal_stream` is the variable
// JOURNAL_STREAM, null if unset: it names a stream by device and inode, so it is not believed
// where `fd` has been redirected since.
bool IsJournal(int fd, const char* journal_stream);

// One entry: what one datagram to OpenJournal() says. Pure.
std::string JournalEntry(const JournalFields& fields);

// A socket on which every write is one entry; invalid where no journal listens.
UniqueFd OpenJournal();

// Waits, at most for `limit`, until the journal has taken all that was written to `journal`;
// returns whether it has. The journal looks up the unit of a process (`journalctl -u`) when it
// takes the first entry of it, and finds none once the process has gone.
bool AwaitJournal(int journal, Duration limit);

}  // namespace hlaunch
