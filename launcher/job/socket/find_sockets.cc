// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/find_sockets.h"

#include <sys/stat.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "launcher/job/socket/ask_socket.h"
#include "proto/base/clock.h"
#include "proto/base/user_files.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(2);

// Whether the process that the socket's name tells is one of that user. Others may choose the name.
bool IsOfItsUser(const JobSocketName& socket) {
  struct stat status = {};
  return ::stat(absl::StrCat("/proc/", socket.pid).c_str(), &status) == 0 &&
         status.st_uid == socket.uid;
}

}  // namespace

FoundJobs FindJobs(std::optional<uid_t> uid) {
  std::vector<std::pair<JobSocketName, SocketQuestion>> asked;
  FoundJobs found;
  Instant deadline = MonotonicClock().Now() + kPatience;
  for (JobSocketName& socket : JobSocketsIn(ReadWholeFile("/proc/net/unix").value_or(""), uid)) {
    absl::StatusOr<SocketQuestion> question =
        SocketQuestion::Send(socket, "who", nlohmann::json::object(), deadline);
    if (question.ok()) {
      asked.emplace_back(std::move(socket), *std::move(question));
    } else if (absl::IsUnavailable(question.status()) && IsOfItsUser(socket)) {
      found.silent.push_back(socket.pid);
    }
  }
  deadline = MonotonicClock().Now() + kPatience;
  for (auto& [socket, question] : asked) {
    const absl::StatusOr<nlohmann::json> answer = question.Await(deadline);
    absl::StatusOr<JobHere> here = answer.ok() ? ReadJobHere(*answer) : answer.status();
    if (here.ok()) {
      found.jobs.push_back({std::move(socket), question.pid(), *std::move(here)});
    } else if (absl::IsDeadlineExceeded(here.status())) {
      found.silent.push_back(question.pid());
    }
  }
  return found;
}

}  // namespace hlaunch
