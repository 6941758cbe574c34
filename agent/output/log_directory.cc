// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/log_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/output/console.h"
#include "proto/base/log.h"
#include "rendezvous/net/socket/local_addresses.h"

namespace hlaunch {
namespace {

constexpr char kNoFiles[] = "/dev/null";
constexpr size_t kMaxIdBytes = 128;

bool Has(Streams set, Streams stream) {
  return (static_cast<int>(set) & static_cast<int>(stream)) != 0;
}

// Makes one component of a path from any job id.
std::string FileName(absl::string_view job_id) {
  std::string name(job_id.substr(0, kMaxIdBytes));
  for (char& c : name) {
    if (c == '/' || (c >= 0 && c < ' ') || c == 127) c = '_';
  }
  return name;
}

// Makes `<parent>/<name>_<random>`. Returns its path, or "" and sets errno.
std::string MakeUnique(const std::string& parent, const std::string& name) {
  std::string path = absl::StrCat(parent, "/", name, "_XXXXXX");
  return ::mkdtemp(path.data()) == nullptr ? "" : path;
}

absl::Status CannotMake(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot use ", path, " for log files: ", why, "; see --log-dir"));
}

// Returns an absolute path, since workers may change their directory.
absl::StatusOr<std::string> MakeNamed(const std::string& name) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  if (error) return CannotMake(name, error.message());
  std::filesystem::create_directories(path, error);
  std::error_code ignored;  // The first error says more.
  if (!std::filesystem::is_directory(path, ignored)) {
    return CannotMake(name, error ? error.message() : std::strerror(ENOTDIR));
  }
  return path.string();
}

}  // namespace

void HoldDirectory(const JobLogs& logs) {
  *logs.held =
      UniqueFd(::open(logs.directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool RestoreDirectory(const JobLogs& logs) {
  struct stat held = {}, now = {};
  if (!logs.held->valid() || ::fstat(logs.held->get(), &held) != 0) return false;
  if (::lstat(logs.directory.c_str(), &now) == 0) {
    return held.st_dev == now.st_dev && held.st_ino == now.st_ino;
  }
  if (errno != ENOENT || ::mkdir(logs.directory.c_str(), S_IRWXU) != 0) return false;
  HoldDirectory(logs);
  return logs.held->valid();
}

absl::StatusOr<std::unique_ptr<LogDirectory>> LogDirectory::Make(const LogSpec& spec,
                                                                 absl::string_view job_id) {
  JobLogs logs;
  logs.spec = spec;
  logs.job_id = std::string(job_id);
  std::unique_ptr<AgentDirectory> own;
  const auto made = [&] {
    return std::unique_ptr<LogDirectory>(new LogDirectory(logs, std::move(own)));
  };
  if (spec.directory == kNoFiles) return made();
  logs.kept = KeepsFiles(spec);
  std::string parent = TemporaryDirectory();
  if (!logs.kept) {
    auto directory = AgentDirectory::Make(parent);
    if (directory.ok()) {
      own = *std::move(directory);
      logs.directory = own->path();
      HoldDirectory(logs);
    } else {
      LogWarning(absl::StrCat("no directory for error files below ", parent, ": ",
                              directory.status().message(),
                              "; reports will lack Python's exception; set TMPDIR"));
    }
    return made();
  }
  if (!spec.directory.empty()) {
    auto named = MakeNamed(spec.directory);
    if (!named.ok()) return named.status();
    parent = *named;
  }
  logs.directory = MakeUnique(parent, FileName(job_id));
  if (logs.directory.empty()) return CannotMake(parent, std::strerror(errno));
  HoldDirectory(logs);
  Log(spec.directory.empty() ? LogLevel::kInfo : LogLevel::kDebug,
      absl::StrCat("log files are in ", logs.directory));
  return made();
}

RoundLogs::RoundLogs(const JobLogs& logs, const Assignment& assignment, std::string role, int nproc)
    : logs_(logs),
      first_rank_(assignment.first_rank),
      round_(assignment.round),
      only_worker_(assignment.world_size == 1),
      role_(std::move(role)) {
  if (logs_.directory.empty()) return;
  if (!RestoreDirectory(logs_)) {
    LogWarning(absl::StrCat(
        logs_.directory, " is not the directory any more that this job made, or cannot be made ",
        "again: who may rename in the folder around it has replaced it. This round has no log ",
        "files; give --log-dir a folder in which only you may write"));
    return;
  }
  if (!logs_.kept) {
    directory_ = logs_.directory;  // Its files have the round in their names.
    return;
  }
  constexpr mode_t kMode = 0777;  // The umask decides.
  directory_ = absl::StrCat(logs_.directory, "/attempt_", assignment.restart_count);
  if (::mkdir(directory_.c_str(), kMode) != 0 && errno == EEXIST) {
    absl::StrAppend(&directory_, "_round_", assignment.round);
    ::mkdir(directory_.c_str(), kMode);
  }
  for (int local_rank = 0; local_rank < nproc; ++local_rank) {
    if (::mkdir(Path(local_rank).c_str(), kMode) == 0 || errno == EEXIST) continue;
    LogWarning(absl::StrCat("cannot make ", Path(local_rank), ": ", std::strerror(errno)));
    break;
  }
  const auto side_file = [&](const std::vector<std::string>& words, const char* name) {
    return words.empty() ? nullptr
                         : std::make_shared<LogFile>(absl::StrCat(directory_, "/", name),
                                                     Rotation{}, logs_.losses);
  };
  filtered_out_ = side_file(logs_.spec.stdout_filters, "filtered_stdout.log");
  filtered_err_ = side_file(logs_.spec.stderr_filters, "filtered_stderr.log");
}

std::string RoundLogs::Path(int local_rank) const {
  return absl::StrCat(directory_, "/", local_rank);
}

std::string RoundLogs::WorkerDirectory(int local_rank) const {
  return directory_.empty() || !logs_.kept ? "" : Path(local_rank);
}

std::string RoundLogs::ErrorFile(int local_rank) const {
  if (directory_.empty()) return "";
  return logs_.kept ? absl::StrCat(Path(local_rank), "/error.json")
                    : absl::StrCat(directory_, "/error_", round_, "_", local_rank, ".json");
}

std::string RoundLogs::StacksFile(int local_rank) const {
  const std::string directory = WorkerDirectory(local_rank);
  return directory.empty() ? "" : absl::StrCat(directory, "/stacks.txt");
}

WorkerRoutes RoundLogs::Routes(int local_rank) {
  const LogSpec& spec = logs_.spec;
  const Rank rank = first_rank_ + local_rank;
  const std::string pattern = spec.prefix_template.empty() ? "[${rank}] " : spec.prefix_template;
  const std::string prefix =
      spec.no_prefix ? "" : LinePrefix(pattern, {role_, HostName(), local_rank, rank});
  WorkerRoutes routes;
  routes.whole_lines = spec.no_prefix && !only_worker_;
  routes.merge_stderr = spec.merge_stderr;
  routes.rank = rank;
  routes.job_id = logs_.job_id;
  routes.round = round_;
  if (!only_worker_ || !spec.prefix_template.empty()) routes.prefix = prefix;
  if (spec.timestamps) routes.prefix = absl::StrCat("${time} ", routes.prefix);
  routes.out = Route(local_rank, Streams::kOut, prefix);
  routes.err = Route(local_rank, Streams::kErr, prefix);
  return routes;
}

StreamRoute RoundLogs::Route(int local_rank, Streams stream, const std::string& prefix) {
  const LogSpec& spec = logs_.spec;
  const bool shown = spec.shown_ranks.empty() || spec.shown_ranks.count(local_rank) > 0;
  const bool out = stream == Streams::kOut;
  StreamRoute route;
  route.console = shown;
  if (directory_.empty()) return route;
  const bool tee = Has(spec.tee.Of(local_rank), stream);
  const bool redirect = Has(spec.redirects.Of(local_rank), stream);
  route.console = shown && (tee || !redirect);
  if (tee || redirect) {
    route.file = std::make_shared<LogFile>(
        absl::StrCat(Path(local_rank), out ? "/stdout.log" : "/stderr.log"), spec.rotation,
        logs_.losses);
  }
  route.filtered = out ? filtered_out_ : filtered_err_;
  if (route.filtered != nullptr) {
    route.filter = LineFilter(FillPrefix(prefix, out ? "stdout" : "stderr", ""),
                              out ? spec.stdout_filters : spec.stderr_filters);
  }
  return route;
}

}  // namespace hlaunch
