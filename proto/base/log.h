// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// hlaunch's own messages to the person. Each is one whole line on stderr, `hlaunch: …`, never mixed
// with a worker's line. If nothing reads stderr for 0.1 s, the line is lost. If stderr is systemd's
// journal, the line is an entry with its level and with the name of SetLogJob, without `hlaunch: `.
// What a terminal would obey is shown as TerminalText does, because a line may quote strangers.
// Thread-safe.
enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Lines below `level` are dropped; kInfo unless set. Call before other threads start.
void SetLogLevel(LogLevel level);

// Names this node in every later line ("hlaunch[node1]: …"). Empty: "hlaunch: …".
void SetLogName(absl::string_view name);

// Sets the job of all later lines, HLAUNCH_JOB_ID in the journal. Call before other threads start.
void SetLogJob(absl::string_view job_id);

// Makes every later line a JSON object: {"time": …, "level": "warning", "host": "node1",
// "message": …}; "host" is missing if this node has no name. Call before other threads start.
void SetLogJson();

// What SetLogName, SetLogJob and SetLogJson have set, as text for a process that speaks for this
// one: its lines look the same once it has called SetLogForm. Other text changes nothing. Call both
// where no other thread sets the form.
std::string LogFormText();
void SetLogForm(absl::string_view text);

void Log(LogLevel level, absl::string_view line);
// The same for a line that may have colours of ours. The rest of it must be TerminalText.
void LogColoured(LogLevel level, absl::string_view line);
inline void LogDebug(absl::string_view line) { Log(LogLevel::kDebug, line); }
inline void LogInfo(absl::string_view line) { Log(LogLevel::kInfo, line); }
inline void LogWarning(absl::string_view line) { Log(LogLevel::kWarning, line); }
inline void LogError(absl::string_view line) { Log(LogLevel::kError, line); }

}  // namespace hlaunch
