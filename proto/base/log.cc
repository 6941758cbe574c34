// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "proto/base/clock.h"
#include "proto/base/system_journal.h"
#include "proto/base/terminal_text.h"
#include "proto/base/wall_time.h"
#include "spdlog/sinks/ansicolor_sink.h"
#include "spdlog/spdlog.h"

namespace hlaunch {
namespace {

// A line is dropped if nothing reads stderr for this long (a paused pager, Ctrl-S, a stalled ssh):
// that may cost a line, never the job.
constexpr int kPatienceMillis = 100;
// The journal may take this long for the first line of a process.
constexpr Duration kFirstLine = std::chrono::seconds(1);

constexpr char kJson[] = "json";  // In LogFormText.

struct Form {
  bool json = false;
  std::string name;
  std::string job_id;
};

Form& LogForm() {
  static Form form;
  return form;
}

// The numbers of syslog.
const char* Priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return "7";
    case spdlog::level::warn:
      return "4";
    case spdlog::level::err:
      return "3";
    default:
      return "6";
  }
}

// Whether the stream that systemd has made of stderr can carry `message` as well as an entry can:
// it is one line and has no field but its level. The journal knows the stream's unit whenever it
// reads it.
bool FitsStream(const spdlog::details::log_msg& message) {
  return LogForm().job_id.empty() &&
         std::find(message.payload.begin(), message.payload.end(), '\n') == message.payload.end();
}

// Writes an entry with fields. The socket is opened for each line: a keeper closes unknown ones.
bool SayInJournal(const spdlog::details::log_msg& message) {
  JournalFields fields = {{"MESSAGE", std::string(message.payload.data(), message.payload.size())},
                          {"PRIORITY", Priority(message.level)},
                          {"SYSLOG_IDENTIFIER", program_invocation_short_name}};
  if (!LogForm().job_id.empty()) fields.emplace_back("HLAUNCH_JOB_ID", LogForm().job_id);
  const std::string entry = JournalEntry(fields);
  const UniqueFd journal = OpenJournal();
  pollfd room = {journal.get(), POLLOUT, 0};
  if (!journal.valid() || ::poll(&room, 1, kPatienceMillis) != 1 ||
      ::write(journal.get(), entry.data(), entry.size()) <= 0) {
    return false;
  }
  static std::atomic<pid_t> known = 0;  // The process whose unit the journal has looked up.
  if (known.exchange(::getpid()) != ::getpid()) AwaitJournal(journal.get(), kFirstLine);
  return true;
}

// Writes a line with its level in front, as a stream to the journal takes it.
void SayInStream(const spdlog::details::log_msg& message) {
  const absl::string_view text(message.payload.data(), message.payload.size());
  const std::string line = absl::StrCat("<", Priority(message.level), ">", text, "\n");
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0)
    return;  // There is no other way to report it.
}

class StderrSink final : public spdlog::sinks::ansicolor_stderr_sink_mt {
 public:
  StderrSink() {
    const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org
    if (no_color != nullptr && *no_color != '\0') set_color_mode(spdlog::color_mode::never);
  }
  void log(const spdlog::details::log_msg& message) override {
    if (is_journal_ && !FitsStream(message) && SayInJournal(message)) return;
    pollfd stderr_room = {STDERR_FILENO, POLLOUT, 0};
    if (::poll(&stderr_room, 1, kPatienceMillis) == 0) return;
    if (is_journal_) return SayInStream(message);
    spdlog::sinks::ansicolor_stderr_sink_mt::log(message);
  }

 private:
  const bool is_journal_ = IsJournal(STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
};

std::shared_ptr<spdlog::logger>& Logger() {
  static std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("hlaunch", std::make_shared<StderrSink>());
    made->set_pattern("%^hlaunch:%$ %v");
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return logger;
}

spdlog::level::level_enum Level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void SetPattern() {
  const Form& form = LogForm();
  if (form.json) {
    Logger()->set_pattern("%v");
  } else if (form.name.empty()) {
    Logger()->set_pattern("%^hlaunch:%$ %v");
  } else {
    Logger()->set_pattern(absl::StrCat("%^hlaunch[", form.name, "]:%$ %v"));
  }
}

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

std::string JsonLine(LogLevel level, absl::string_view line) {
  nlohmann::ordered_json object;
  object["time"] = WallTime(WallMillis());
  object["level"] = LevelName(level);
  if (!LogForm().name.empty()) object["host"] = LogForm().name;
  object["message"] = std::string(line);
  // Bytes that are no UTF-8 are replaced, not refused.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

void SetLogLevel(LogLevel level) { Logger()->set_level(Level(level)); }

void SetLogName(absl::string_view name) {
  LogForm().name = std::string(name);
  SetPattern();
}

void SetLogJob(absl::string_view job_id) { LogForm().job_id = std::string(job_id); }

void SetLogJson() {
  LogForm().json = true;
  SetPattern();
}

std::string LogFormText() {
  const Form& form = LogForm();
  return absl::StrCat(form.json ? kJson : "", "\n", form.name, "\n", form.job_id);
}

void SetLogForm(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '\n');
  if (parts.size() != 3) return;
  LogForm() = {parts[0] == kJson, parts[1], parts[2]};
  SetPattern();
}

void Log(LogLevel level, absl::string_view line) { LogColoured(level, TerminalText(line)); }

void LogColoured(LogLevel level, absl::string_view line) {
  const std::string json = LogForm().json ? JsonLine(level, line) : "";
  if (LogForm().json) line = json;
  Logger()->log(Level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace hlaunch
