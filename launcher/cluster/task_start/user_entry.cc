// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/user_entry.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr uid_t kNobody = 65534;
constexpr uid_t kNone16 = 65535;  // This is -1 where user numbers have 16 bits.
constexpr uid_t kNone = static_cast<uid_t>(-1);
// systemd gives these to services that have no user of their own (DynamicUser=).
constexpr uid_t kFirstDynamic = 61184, kLastDynamic = 65519;

std::vector<std::string> FirstLine(absl::string_view text) {
  return absl::StrSplit(text.substr(0, text.find('\n')), ':');
}

}  // namespace

absl::Status CheckGetent(int exit_code) {
  constexpr int kNoSuchEntry = 2;  // getent(1).
  if (exit_code == 0) return absl::OkStatus();
  if (exit_code == kNoSuchEntry) return absl::NotFoundError("there is no such entry");
  return absl::UnavailableError(exit_code < 0
                                    ? "getent did not answer in time, or could not be run"
                                    : absl::StrCat("getent ended with exit code ", exit_code));
}

absl::StatusOr<UserEntry> ReadUserEntry(absl::string_view getent) {
  const std::vector<std::string> fields = FirstLine(getent);
  UserEntry user;
  if (fields.size() != 7 || fields[0].empty() || !absl::SimpleAtoi(fields[2], &user.uid) ||
      !absl::SimpleAtoi(fields[3], &user.gid)) {
    return absl::NotFoundError("there is no such user");
  }
  user.name = fields[0];
  user.home = fields[5];
  user.shell = fields[6];
  return user;
}

absl::StatusOr<std::vector<gid_t>> ReadGroups(absl::string_view getent, absl::string_view name) {
  std::vector<gid_t> groups;
  absl::string_view line = getent.substr(0, getent.find('\n'));
  // Behind a long name without groups there is nothing.
  if (!absl::ConsumePrefix(&line, name) || line.find_first_not_of(" \t") == 0) {
    return absl::NotFoundError("getent says nothing of the groups");
  }
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  for (const std::string& word : words) {
    gid_t group = 0;
    if (absl::SimpleAtoi(word, &group)) groups.push_back(group);
  }
  return groups;
}

absl::StatusOr<gid_t> ReadGroupNumber(absl::string_view getent) {
  const std::vector<std::string> fields = FirstLine(getent);
  gid_t group = 0;
  if (fields.size() == 4 && absl::SimpleAtoi(fields[2], &group)) return group;
  return absl::NotFoundError("there is no such group");
}

absl::Status CheckUser(const UserEntry& user, const std::string& name, uid_t uid,
                       const UserRule& rule) {
  const auto refuse = [](const std::string& why) { return absl::PermissionDeniedError(why); };
  if (user.uid != uid) {
    return refuse(absl::StrCat("the user ", name, " has the number ", user.uid, " here, and ", uid,
                               " where the job was submitted"));
  }
  if (uid == 0) {
    if (rule.allow_root) return absl::OkStatus();
    return refuse("root runs no jobs here; an administrator can allow it: allow-root = yes");
  }
  if (uid < rule.least_uid) {
    return refuse(absl::StrCat("the user ", name, " has the number ", uid,
                               ", and those below least-uid, ", rule.least_uid,
                               ", are of services and run no jobs here"));
  }
  if (uid >= kFirstDynamic && uid <= kLastDynamic) {
    return refuse(absl::StrCat("the user ", name, " has the number ", uid, ", and those from ",
                               kFirstDynamic, " to ", kLastDynamic,
                               " are of services and run no jobs here"));
  }
  if (uid == kNobody || uid == kNone16 || uid == kNone)
    return refuse(absl::StrCat("the user ", name, " runs no jobs"));
  return absl::OkStatus();
}

}  // namespace hlaunch
