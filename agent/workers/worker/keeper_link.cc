// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/keeper_link.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agent/workers/worker/death_report.h"
#include "agent/workers/worker/fence.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {

absl::StatusOr<KeeperLink> KeeperLink::FromEnv() {
  const char* text = std::getenv(kEnvKeeperFd);
  if (text == nullptr) return absl::NotFoundError(absl::StrCat(kEnvKeeperFd, " is not set"));
  const std::string value = text;
  ::unsetenv(kEnvKeeperFd);
  int fd = -1;
  int type = 0;
  int domain = 0;
  socklen_t size = sizeof(int);
  if (!absl::SimpleAtoi(value, &fd) || fd < 3 ||
      ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET ||
      ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) {
    return absl::InvalidArgumentError(absl::StrCat(
        kEnvKeeperFd, "=", value, " is not a keeper's socket; hlaunch sets it, unset it"));
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return KeeperLink(UniqueFd(fd));
}

std::string KeeperLink::ForExec() {
  ::fcntl(socket_.get(), F_SETFD, 0);
  return absl::StrCat(kEnvKeeperFd, "=", socket_.get());
}

absl::Status KeeperLink::RegisterDeathReport(const std::vector<std::string>& argv,
                                             const std::vector<std::string>& env) const {
  const std::string message = EncodeDeathReport({argv, env});
  if (argv.empty() || message.size() > kMaxDeathReportBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a death report of ", argv.size(), " words and ",
                                                   message.size(), " bytes; at most ",
                                                   kMaxDeathReportBytes, " bytes are kept"));
  }
  if (::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    return absl::UnavailableError(absl::StrCat("the keeper: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

void KeeperLink::LeaveBehind(const std::string& directory) const {
  const std::string message = absl::StrCat(kDirectoryWord, directory);
  (void)::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void KeeperLink::SayBegun() const {
  ::prctl(PR_SET_PDEATHSIG, 0);
  (void)::send(socket_.get(), kBegunWord.data(), kBegunWord.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void KeeperLink::ShowLife(Instant until) const {
  const std::string message = EncodeSignOfLife(until);
  // If the keeper is dead, fd() becomes readable; a stopped keeper could not act on the message.
  (void)::send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace hlaunch
