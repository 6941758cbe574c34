// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/part_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "launcher/cluster/tasks/part_words.h"
#include "nlohmann/json.hpp"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/json_fields.h"

namespace hlaunch {
namespace {

constexpr char kRecordName[] = "part.json";
constexpr char kJobFolder[] = "job";
constexpr size_t kMaxRecord = 4 << 20;
constexpr size_t kMaxSaid = 64 << 10;  // The limit of a file that the job has written.

absl::Status CannotWrite(const std::string& path) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
}

nlohmann::json ToJson(const PartRecord& record) {
  PartOrder order = record.order;
  order.token.clear();
  order.request.environment.clear();
  order.request.limits.clear();
  return {{"order", ToJson(order)},          {"mark", record.mark},
          {"boot_id", record.boot_id},       {"holder", static_cast<int64_t>(record.holder)},
          {"start_time", record.start_time}, {"killed", record.killed},
          {"forgotten", record.forgotten},   {"trouble", record.trouble},
          {"made_ms", record.made_ms}};
}

absl::StatusOr<PartRecord> RecordOf(const std::string& text) {
  HLAUNCH_ASSIGN_OR_RETURN(const nlohmann::json object, ParseObject(text));
  JsonFields fields(object, "part.json");
  PartRecord record;
  int64_t holder = 0;
  const nlohmann::json* const order = fields.Object("order");
  fields.Text("mark", &record.mark);
  fields.Text("boot_id", &record.boot_id);
  fields.Number("holder", &holder, 0, INT32_MAX);
  fields.Number("start_time", &record.start_time);
  fields.Flag("killed", &record.killed);
  fields.Flag("forgotten", &record.forgotten);
  fields.Text("trouble", &record.trouble);
  fields.Number("made_ms", &record.made_ms, 0, INT64_MAX);
  HLAUNCH_RETURN_IF_ERROR(fields.status());
  if (order == nullptr) return absl::InvalidArgumentError("part.json has no order");
  HLAUNCH_ASSIGN_OR_RETURN(record.order, ReadPartOrder(*order));
  record.holder = static_cast<pid_t>(holder);
  return record;
}

// Replaces a file that belongs to root. Returns once the new one is on the disk.
absl::Status ReplaceFile(const std::string& folder, const char* name, const std::string& text,
                         mode_t mode = 0600) {
  const std::string path = absl::StrCat(folder, "/", name), draft = absl::StrCat(path, ".new");
  ::unlink(draft.c_str());
  const UniqueFd file(
      ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return CannotWrite(draft);
  const auto size = static_cast<ssize_t>(text.size());
  errno = ENOSPC;  // The error of a write that is cut short.
  if (::fchmod(file.get(), mode) != 0 || ::write(file.get(), text.data(), text.size()) != size ||
      ::fsync(file.get()) != 0 || ::rename(draft.c_str(), path.c_str()) != 0) {
    return CannotWrite(path);
  }
  const UniqueFd kept(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!kept.valid() || ::fsync(kept.get()) != 0) return CannotWrite(folder);
  return absl::OkStatus();
}

// Returns the JSON object in a file of the job; an empty object if there is none.
nlohmann::json SaidIn(int folder, const char* name, uid_t uid) {
  const absl::StatusOr<std::string> text = ReadUserFile(folder, name, uid, kMaxSaid);
  absl::StatusOr<nlohmann::json> object =
      text.ok() ? ParseObject(*text) : absl::StatusOr<nlohmann::json>(text.status());
  return object.ok() ? *std::move(object) : nlohmann::json::object();
}

void ReadEnding(const nlohmann::json& said, JobFolderFacts& facts) {
  JsonFields fields(said, "end.json");
  if (!fields.Has("exit_code")) return;
  int exit_code = 0;
  fields.Number("exit_code", &exit_code, 0, 255);
  if (fields.status().ok()) facts.exit_code = exit_code;
}

void ReadNews(const nlohmann::json& said, JobFolderFacts& facts) {
  constexpr int kMost = 1'000'000'000;
  constexpr int64_t kMostTime = int64_t{1} << 52;
  JsonFields fields(said, "news.json");
  if (!fields.Has("round")) return;
  JobNews news;
  fields.Number("round", &news.round, 0, kMost);
  fields.Number("restarts", &news.restarts, 0, kMost);
  fields.Flag("runs", &news.runs);
  fields.Number("ran_ms", &news.ran_ms, 0, kMostTime);
  fields.Number("whole_ms", &news.whole_ms, 0, kMostTime);
  fields.Number("at_ms", &news.at_ms, 0, kMostTime);
  if (fields.status().ok()) facts.news = news;
}

}  // namespace

std::string MarkOfToken(const std::string& token) {
  // FNV-1a. Its 64 bits reveal at most an eighth of the token.
  uint64_t mark = 0xcbf29ce484222325;
  for (const char letter : token)
    mark = (mark ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return absl::StrCat(absl::Hex(mark, absl::kZeroPad16));
}

absl::Status PartFolders::Open() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  // Users must reach their job's folder below it by its full path.
  if (!error && ::chmod(path_.c_str(), 0755) == 0) return absl::OkStatus();
  const std::string why = error ? error.message() : std::strerror(errno);
  return absl::FailedPreconditionError(absl::StrCat("cannot make the folder ", path_, ": ", why));
}

absl::Status PartFolders::Make(uint64_t job) const {
  if (::mkdir(PartPath(job).c_str(), 0755) != 0) {
    if (errno == EEXIST) {
      return absl::AlreadyExistsError(absl::StrCat("there is a part of job ", job, " already"));
    }
    return CannotWrite(PartPath(job));
  }
  if (::chmod(PartPath(job).c_str(), 0755) == 0 && ::mkdir(JobPath(job).c_str(), 0700) == 0) {
    return absl::OkStatus();
  }
  absl::Status failed = CannotWrite(JobPath(job));
  ::rmdir(PartPath(job).c_str());
  return failed;
}

absl::Status PartFolders::Keep(const PartRecord& record) const {
  return ReplaceFile(PartPath(record.order.job), kRecordName, TextOf(ToJson(record)));
}

absl::Status PartFolders::TellToLeave(uint64_t job, const std::string& reason) const {
  return ReplaceFile(PartPath(job), kLeaveNotice, absl::StrCat(reason, "\n"), 0644);
}

absl::Status PartFolders::TakeBackLeave(uint64_t job) const {
  const std::string path = absl::StrCat(PartPath(job), "/", kLeaveNotice);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot remove ", path, ": ", std::strerror(errno)));
}

absl::StatusOr<PartRecord> PartFolders::Read(uint64_t job) const {
  HLAUNCH_ASSIGN_OR_RETURN(const UniqueFd folder, OpenFolder(PartPath(job)));
  HLAUNCH_ASSIGN_OR_RETURN(const std::string text,
                           ReadUserFile(folder.get(), kRecordName, ::geteuid(), kMaxRecord));
  HLAUNCH_ASSIGN_OR_RETURN(PartRecord record, RecordOf(text));
  if (record.order.job == job) return record;
  return absl::InvalidArgumentError(absl::StrCat("part.json is of job ", record.order.job));
}

bool PartFolders::HasRecord(uint64_t job) const {
  const std::string path = absl::StrCat(PartPath(job), "/", kRecordName);
  return ::access(path.c_str(), F_OK) == 0 || errno != ENOENT;
}

std::vector<std::string> PartFolders::Names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path_, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

std::vector<uint64_t> PartFolders::All() const {
  std::vector<uint64_t> all;
  for (const std::string& name : Names()) {
    uint64_t job = 0;
    if (absl::SimpleAtoi(name, &job) && absl::StrCat(job) == name) all.push_back(job);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::string> PartFolders::AllSetAside() const {
  std::vector<std::string> names = Names();
  names.erase(
      std::remove_if(names.begin(), names.end(),
                     [](const std::string& name) { return !absl::StartsWith(name, kSetAside); }),
      names.end());
  return names;
}

// A folder that was set aside under the same name before may still exist.
bool PartFolders::Take(const std::string& path, absl::string_view name) const {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    const std::string aside = absl::StrCat(path_, "/", kSetAside, name, "-", i);
    if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, aside.c_str(), RENAME_NOREPLACE) == 0) {
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

bool PartFolders::SetAside(uint64_t job) const { return Take(PartPath(job), absl::StrCat(job)); }

bool PartFolders::SetAsidePrivate(uint64_t job) const {
  return Take(PrivatePath(job), absl::StrCat(job, "-private"));
}

Removed PartFolders::RemoveSome(const std::string& name, int most) const {
  const absl::StatusOr<UniqueFd> folder = OpenFolder(path_);
  return folder.ok() ? hlaunch::RemoveSome(folder->get(), name, most) : Removed::kNot;
}

absl::StatusOr<UniqueFd> PartFolders::OpenJob(uint64_t job) const {
  HLAUNCH_ASSIGN_OR_RETURN(const UniqueFd part, OpenFolder(PartPath(job)));
  return OpenFolderIn(part.get(), kJobFolder);
}

JobFolderFacts PartFolders::Look(uint64_t job, uid_t uid) const {
  JobFolderFacts facts;
  const absl::StatusOr<UniqueFd> opened = OpenJob(job);
  if (!opened.ok()) return facts;
  const int folder = opened->get();
  facts.held = OpenUserFile(folder, "job.json", uid).ok();
  facts.started = OpenUserFile(folder, "started", uid).ok();
  const nlohmann::json meeting = SaidIn(folder, "meeting.json", uid);
  JsonFields(meeting, "meeting.json").Text("endpoint", &facts.meeting);
  ReadEnding(SaidIn(folder, "end.json", uid), facts);
  ReadNews(SaidIn(folder, "news.json", uid), facts);
  return facts;
}

std::string PartFolders::PartPath(uint64_t job) const { return absl::StrCat(path_, "/", job); }

std::string PartFolders::PrivatePath(uint64_t job) const {
  return absl::StrCat(PartPath(job), "/private");
}

std::string PartFolders::JobPath(uint64_t job) const {
  return absl::StrCat(PartPath(job), "/", kJobFolder);
}

}  // namespace hlaunch
