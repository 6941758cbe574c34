// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/known_jobs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "launcher/text/printable.h"
#include "launcher/text/text_table.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"
#include "proto/base/wall_time.h"

namespace hlaunch {
namespace {

using nlohmann::ordered_json;

constexpr size_t kLongestId = 200;
constexpr size_t kShownWords = 60;  // Characters of a command line.

bool IsFileName(const std::string& id) {
  constexpr char kAllowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+=@:,";
  return !id.empty() && id.size() <= kLongestId && id[0] != '.' &&
         id.find_first_not_of(kAllowed) == std::string::npos;
}

bool IsOver(const DetachedJob& job) {
  return job.life == JobLife::kEnded || job.life == JobLife::kLost;
}

void Remove(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

void RemoveOldest(const std::string& jobs_directory) {
  size_t kept = 0;
  for (const DetachedJob& job : KnownJobs(jobs_directory)) {
    if (IsOver(job) && ++kept > kKeptJobs) Remove(job.directory);
  }
}

std::vector<DetachedJob> Those(const std::vector<DetachedJob>& known, bool over) {
  std::vector<DetachedJob> found;
  std::copy_if(known.begin(), known.end(), std::back_inserter(found),
               [over](const DetachedJob& job) { return IsOver(job) == over; });
  return found;
}

// Text that follows a line of an error. The lines are indented, or they would not be shown as
// lines.
std::string Indented(const std::string& text) {
  return absl::StrCat("\n  ", absl::StrReplaceAll(absl::StripSuffix(text, "\n"), {{"\n", "\n  "}}));
}

std::string Started(const DetachedJob& job) { return WallTime(job.started_ms); }

std::string WordsText(const DetachedJob& job, size_t longest) {
  std::vector<std::string> words = job.words;
  if (!words.empty()) words[0] = words[0].substr(words[0].rfind('/') + 1);
  const std::string text = PrintableLine(absl::StrJoin(words, " "));
  return text.size() <= longest ? text : absl::StrCat(text.substr(0, longest), "...");
}

ordered_json ToJson(const DetachedJob& job) {
  const char* const kLives[] = {"running", "ended", "lost", "elsewhere"};
  ordered_json shown = {{"job_id", job.id},
                        {"state", kLives[static_cast<int>(job.life)]},
                        {"host", job.holder.host},
                        {"pid", job.holder.pid},
                        {"started", Started(job)}};
  shown["ended"] = nullptr;
  shown["exit_code"] = nullptr;
  if (job.ending.has_value()) {
    shown["ended"] = WallTime(job.ending->wall_ms);
    shown["exit_code"] = job.ending->exit_code;
  }
  shown["command"] = job.words;
  shown["log"] = nullptr;
  if (!job.directory.empty()) shown["log"] = absl::StrCat(job.directory, "/", kLogName);
  return shown;
}

}  // namespace

std::string JobsDirectory(const Environment& environment) {
  const std::string state = environment.Get("XDG_STATE_HOME");
  if (!state.empty() && state[0] == '/') return absl::StrCat(state, "/hlaunch");
  const std::string home = environment.Get("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.local/state/hlaunch");
}

std::vector<DetachedJob> KnownJobs(const std::string& jobs_directory) {
  std::vector<DetachedJob> jobs;
  std::error_code error;
  for (std::filesystem::directory_iterator at(jobs_directory, error), end; !error && at != end;
       at.increment(error)) {
    absl::StatusOr<DetachedJob> job = ReadJob(at->path().string());
    if (job.ok()) jobs.push_back(*std::move(job));
  }
  std::sort(jobs.begin(), jobs.end(), [](const DetachedJob& a, const DetachedJob& b) {
    return a.started_ms != b.started_ms ? a.started_ms > b.started_ms : a.id < b.id;
  });
  return jobs;
}

absl::StatusOr<DetachedJob> ChooseJob(const std::vector<DetachedJob>& known, const std::string& id,
                                      bool ended_will_do) {
  for (const DetachedJob& job : known) {
    if (!id.empty() && job.id == id) return job;
  }
  if (!id.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no job ", PrintableLine(id), " of yours here",
                     known.empty() ? "" : absl::StrCat("; there are", Indented(JobsText(known)))));
  }
  std::vector<DetachedJob> meant = Those(known, /*over=*/false);
  if (meant.empty() && ended_will_do) meant = known;
  if (meant.size() == 1) return meant[0];
  if (meant.empty()) return absl::NotFoundError("no detached job of yours runs here");
  return absl::InvalidArgumentError(
      absl::StrCat("which job is meant? Name one of", Indented(JobsText(meant))));
}

absl::StatusOr<std::string> MakeJobDirectory(const std::string& jobs_directory,
                                             const std::string& id) {
  if (!IsFileName(id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rdzv-id '", PrintableLine(id),
                     "': the id of a detached job is the name of a folder; write it with letters, ",
                     "digits and ._-+=@:,"));
  }
  HLAUNCH_RETURN_IF_ERROR(MakeFolders(jobs_directory));
  const std::string directory = absl::StrCat(jobs_directory, "/", id);
  if (const absl::StatusOr<DetachedJob> old = ReadJob(directory); old.ok()) {
    if (!IsOver(*old)) {
      return absl::AlreadyExistsError(absl::StrCat("a detached job ", id, " is ", LifeText(*old),
                                                   "; end it with hlaunch stop ", id,
                                                   ", or give this one another --rdzv-id"));
    }
    Remove(directory);
  }
  ::rmdir(directory.c_str());  // Left by a job that was killed as it began.
  if (::mkdir(directory.c_str(), S_IRWXU) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot make the folder ", directory, ": ", std::strerror(errno)));
  }
  RemoveOldest(jobs_directory);
  return directory;
}

std::string LifeText(const DetachedJob& job) {
  switch (job.life) {
    case JobLife::kRuns:
      return "running";
    case JobLife::kEnded:
      return absl::StrCat("ended, exit code ", job.ending->exit_code);
    case JobLife::kLost:
      return "lost: what held it was killed";
    case JobLife::kElsewhere:
      return absl::StrCat("started on ", PrintableLine(job.holder.host), ", not ended");
  }
  return "";
}

std::string JobsText(const std::vector<DetachedJob>& jobs) {
  if (jobs.empty()) return "no detached jobs\n";
  std::vector<std::vector<std::string>> rows = {{"JOB", "STATE", "STARTED", "COMMAND"}};
  for (const DetachedJob& job : jobs) {
    rows.push_back({job.id, LifeText(job), Started(job), WordsText(job, kShownWords)});
  }
  return TextTable(std::move(rows));
}

std::string JobsJson(const std::vector<DetachedJob>& jobs) {
  ordered_json json = {{"total_jobs", jobs.size()}, {"jobs", ordered_json::array()}};
  for (const DetachedJob& job : jobs) json["jobs"].push_back(ToJson(job));
  return JsonText(json);
}

std::string OneJobText(const DetachedJob& job) {
  return absl::StrCat(
      "job       ", PrintableLine(job.id), "\nstate     ", LifeText(job), "\nstarted   ",
      Started(job), " on ", PrintableLine(job.holder.host), "\n",
      job.ending.has_value() ? absl::StrCat("ended     ", WallTime(job.ending->wall_ms), "\n") : "",
      "command   ", WordsText(job, std::string::npos - 3), "\nlog       ", job.directory, "/",
      kLogName, "\n");
}

std::string OneJobJson(const DetachedJob& job) { return JsonText(ToJson(job)); }

}  // namespace hlaunch
