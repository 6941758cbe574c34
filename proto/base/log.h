// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/strings/string_view.h"

namespace hlaunch {

// hlaunch's own words to the person: one whole line on stderr each, `hlaunch: …`, never mixed
// with a worker's line. Waits for a reader of stderr for 0.1 s at most, then the line is lost.
// Where stderr is systemd's journal, an entry with its level and with SetLogJob's name, without
// `hlaunch: `. What a terminal would obey is shown as TerminalText does: a line may quote
// strangers. Thread-safe.
enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Lines below `level` are dropped; kInfo unless set. Call before other threads start.
void SetLogLevel(LogLevel level);

// Names this node in every line once it has one ("hlaunch[node1]: …"). Empty: "hlaunch: …".
void SetLogName(absl::string_view name);

// The job of all lines from now on, HLAUNCH_JOB_ID in the journal. Call before other threads start.
void SetLogJob(absl::string_view job_id);

// Every line is a JSON object from now on: {"time": …, "level": "warning", "host": "node1",
// "message": …}; without "host" where this node has no name. Call before other threads start.
void SetLogJson();

void Log(LogLevel level, absl::string_view line);
// The same for a line that may have colours of ours, and is TerminalText otherwise.
void LogColoured(LogLevel level, absl::string_view line);
inline void LogDebug(absl::string_view line) { Log(LogLevel::kDebug, line); }
inline void LogInfo(absl::string_view line) { Log(LogLevel::kInfo, line); }
inline void LogWarning(absl::string_view line) { Log(LogLevel::kWarning, line); }
inline void LogError(absl::string_view line) { Log(LogLevel::kError, line); }

}  // namespace hlaunch
