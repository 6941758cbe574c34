// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/head_files.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

constexpr char kHostsFile[] = "cluster.json";

std::string FileOf(uint64_t job) { return absl::StrCat("job-", job, ".json"); }

// Returns the number in a job file's name; 0: it is no such name.
uint64_t JobOf(absl::string_view name) {
  uint64_t number = 0;
  const bool is_job = absl::ConsumePrefix(&name, "job-") && absl::ConsumeSuffix(&name, ".json") &&
                      absl::SimpleAtoi(name, &number);
  return is_job ? number : 0;
}

absl::Status Wrong(const std::filesystem::path& path, const absl::Status& why) {
  return absl::FailedPreconditionError(absl::StrCat(path.string(), ": ", why.message()));
}

// No other user can write into the folder, so the file needs no further checks.
absl::StatusOr<nlohmann::json> ReadJson(const std::filesystem::path& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (!text.ok()) return Wrong(path, absl::UnavailableError("it cannot be read"));
  absl::StatusOr<nlohmann::json> json = ParseObject(*text);
  return json.ok() ? json : Wrong(path, json.status());
}

absl::StatusOr<HeadJob> ReadJobFile(const std::filesystem::path& path, uint64_t number) {
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
  absl::StatusOr<HeadJob> job = ReadHeadJob(json);
  if (!job.ok()) return Wrong(path, job.status());
  if (job->number != number) return Wrong(path, absl::InvalidArgumentError("it is another job's"));
  return job;
}

}  // namespace

absl::StatusOr<HeadRecord> ReadHeadRecord(const TrustFolder& folder) {
  folder.RemoveDrafts();
  HeadRecord record;
  if (folder.Has(kHostsFile)) {
    const auto path = std::filesystem::path(folder.path()) / kHostsFile;
    HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json json, ReadJson(path));
    absl::StatusOr<HeadRecord> hosts = ReadHosts(json);
    if (!hosts.ok()) return Wrong(path, hosts.status());
    record = std::move(hosts).value();
  }
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder.path(), error), end; !error && entry != end;
       entry.increment(error)) {
    const uint64_t number = JobOf(entry->path().filename().string());
    if (number == 0) continue;
    HLAUNCH_ASSIGN_OR_RETURN(HeadJob job, ReadJobFile(entry->path(), number));
    record.jobs.push_back(std::move(job));
  }
  if (error) return Wrong(folder.path(), absl::UnavailableError(error.message()));
  return record;
}

// Writes jobs before hosts, since a part must be lost before its host is gone. Removes forgotten
// jobs last: the hosts' file then has the last number given, so that no number is given twice. A
// forgotten job may come back after a crash.
absl::Status WriteChanges(const TrustFolder& folder, const HeadChanges& changes,
                          const HeadTable& table) {
  for (const uint64_t number : changes.jobs) {
    const HeadJob* job = table.jobs().Find(number);
    if (job == nullptr) continue;
    HLAUNCH_RETURN_IF_ERROR(folder.ReplaceUntilSync(FileOf(number), TextOf(JobToJson(*job))));
  }
  if (changes.hosts) {
    const auto hosts = HostsToJson(table.jobs().last_number(), table.hosts().all());
    HLAUNCH_RETURN_IF_ERROR(folder.ReplaceUntilSync(kHostsFile, TextOf(hosts)));
  }
  if (changes.hosts || !changes.jobs.empty()) HLAUNCH_RETURN_IF_ERROR(folder.Sync());
  for (const uint64_t number : changes.forgotten) {
    HLAUNCH_RETURN_IF_ERROR(folder.RemoveUntilSync(FileOf(number)));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
