// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/detached/job_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/workers/process/descendants.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

using nlohmann::json;

constexpr char kJobName[] = "job.json";
constexpr char kEndName[] = "end.json";
constexpr char kMeetingName[] = "meeting.json";
constexpr char kTokenName[] = "token";
constexpr char kNewsName[] = "news.json";
constexpr char kStartedName[] = "started";
constexpr mode_t kOnlyMine = S_IRUSR | S_IWUSR;

std::string PathIn(const std::string& directory, absl::string_view name) {
  return absl::StrCat(directory, "/", name);
}

absl::Status WriteWhole(const std::string& path, absl::string_view text) {
  const absl::Status status = WriteWholeFile(path, text, {kOnlyMine});
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", status.message()));
}

absl::Status WriteJson(const std::string& path, const json& value) {
  return WriteWhole(path, value.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

absl::StatusOr<json> ReadJson(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (!text.ok()) return absl::NotFoundError(absl::StrCat("there is no ", path));
  json value = json::parse(*text, nullptr, false);
  if (value.is_object()) return value;
  return absl::InvalidArgumentError(absl::StrCat(path, " cannot be read"));
}

// Returns the member `name`, or `otherwise` if it is missing or of another type.
template <typename T>
T Member(const json& value, const char* name, T otherwise) {
  const auto found = value.find(name);
  if (found == value.end()) return otherwise;
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    return otherwise;
  }
}

json ToJson(const ProcessPlace& place) {
  return {{"host", place.host},
          {"boot_id", place.boot_id},
          {"pid_namespace", place.pid_namespace},
          {"pid", place.pid},
          {"start_time", place.start_time}};
}

ProcessPlace PlaceOf(const json& value) {
  return {Member<std::string>(value, "host", ""), Member<std::string>(value, "boot_id", ""),
          Member<std::string>(value, "pid_namespace", ""), Member<pid_t>(value, "pid", 0),
          Member<uint64_t>(value, "start_time", 0)};
}

JobLife LifeOf(const DetachedJob& job) {
  if (job.ending.has_value()) return JobLife::kEnded;
  const std::optional<bool> lives = Lives(job.holder, PlaceOfThisProcess());
  if (!lives.has_value()) return JobLife::kElsewhere;
  return *lives ? JobLife::kRuns : JobLife::kLost;
}

void ReadEnding(DetachedJob& job) {
  const absl::StatusOr<json> end = ReadJson(PathIn(job.directory, kEndName));
  if (!end.ok()) return;
  job.ending = JobEnding{Member<int>(*end, "exit_code", 0), Member<int64_t>(*end, "ended_ms", 0)};
}

}  // namespace

ProcessPlace PlaceOfThisProcess() {
  ProcessPlace place;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  place.host = host;
  place.boot_id = ReadSmallFile("/proc/sys/kernel/random/boot_id");
  place.boot_id = std::string(absl::StripSuffix(place.boot_id, "\n"));
  std::error_code error;
  place.pid_namespace = std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
  place.pid = ::getpid();
  if (const auto self = ReadProcess(place.pid)) place.start_time = self->start_time;
  return place;
}

std::optional<bool> Lives(const ProcessPlace& place, const ProcessPlace& here) {
  const bool same_host = place.host == here.host;
  if (place.boot_id != here.boot_id) return same_host ? std::optional(false) : std::nullopt;
  if (!same_host || place.pid_namespace != here.pid_namespace) return std::nullopt;
  const std::optional<ProcessEntry> found = ReadProcess(place.pid);
  return found.has_value() && found->start_time == place.start_time && found->state != 'Z';
}

absl::Status KeepJob(const DetachedJob& job) {
  return WriteJson(PathIn(job.directory, kJobName), {{"job_id", job.id},
                                                     {"holder", ToJson(job.holder)},
                                                     {"started_ms", job.started_ms},
                                                     {"words", job.words},
                                                     {"names_ranks", job.names_ranks}});
}

absl::Status KeepEnding(const std::string& directory, const JobEnding& ending) {
  return WriteJson(PathIn(directory, kEndName),
                   {{"exit_code", ending.exit_code}, {"ended_ms", ending.wall_ms}});
}

absl::Status KeepMeeting(const std::string& directory, MeetingPlace place,
                         const std::string& token) {
  if (!token.empty()) {
    place.token_file = PathIn(directory, kTokenName);
    HLAUNCH_RETURN_IF_ERROR(WriteWhole(place.token_file, absl::StrCat(token, "\n")));
  }
  return WriteJson(PathIn(directory, kMeetingName), {{"endpoint", place.endpoint},
                                                     {"token_file", place.token_file},
                                                     {"tls", place.tls},
                                                     {"tls_cert", place.tls_cert},
                                                     {"tls_key", place.tls_key},
                                                     {"tls_ca", place.tls_ca}});
}

absl::Status KeepNews(const std::string& directory, const JobNews& news) {
  return WriteJson(PathIn(directory, kNewsName), {{"round", news.round},
                                                  {"restarts", news.restarts},
                                                  {"runs", news.runs},
                                                  {"ran_ms", news.ran_ms},
                                                  {"whole_ms", news.whole_ms},
                                                  {"at_ms", news.at_ms}});
}

absl::Status KeepStarted(const std::string& directory) {
  return WriteWhole(PathIn(directory, kStartedName), "");
}

absl::StatusOr<DetachedJob> ReadJob(const std::string& directory) {
  HLAUNCH_ASSIGN_OR_RETURN(const json value, ReadJson(PathIn(directory, kJobName)));
  DetachedJob job;
  job.directory = directory;
  job.id = Member<std::string>(value, "job_id", "");
  job.holder = PlaceOf(value.value("holder", json::object()));
  job.started_ms = Member<int64_t>(value, "started_ms", 0);
  job.words = Member<std::vector<std::string>>(value, "words", {});
  job.names_ranks = Member<bool>(value, "names_ranks", false);
  ReadEnding(job);
  job.life = LifeOf(job);
  // The job may have ended between the two looks.
  if (job.life == JobLife::kLost) ReadEnding(job);
  if (job.ending.has_value()) job.life = JobLife::kEnded;
  return job;
}

bool HasStarted(const std::string& directory) {
  return ::access(PathIn(directory, kStartedName).c_str(), F_OK) == 0;
}

absl::StatusOr<MeetingPlace> ReadMeeting(const std::string& directory) {
  HLAUNCH_ASSIGN_OR_RETURN(const json value, ReadJson(PathIn(directory, kMeetingName)));
  const auto text = [&value](const char* name) { return Member<std::string>(value, name, ""); };
  return MeetingPlace{text("endpoint"), text("token_file"), text("tls"),
                      text("tls_cert"), text("tls_key"),    text("tls_ca")};
}

}  // namespace hlaunch
