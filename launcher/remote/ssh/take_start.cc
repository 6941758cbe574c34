// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/take_start.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/text/environment.h"
#include "launcher/text/printable.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/env_contract.h"

namespace hlaunch {
namespace {

constexpr Duration kMessageTime = std::chrono::seconds(60);

// Reads `size` bytes of stdin.
absl::StatusOr<std::string> ReadStdin(size_t size, Instant deadline) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(deadline - MonotonicClock().Now(), Duration::zero()));
    pollfd poll = {STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return absl::DeadlineExceededError("nothing came on standard input");
    const ssize_t n = ::read(STDIN_FILENO, bytes.data() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::UnavailableError("standard input ended before the start was read");
    done += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<StartMessage> ReadStart() {
  const Instant deadline = MonotonicClock().Now() + kMessageTime;
  HLAUNCH_ASSIGN_OR_RETURN(const std::string head,
                           ReadStdin(kStartMagic.size() + sizeof(uint32_t), deadline));
  HLAUNCH_ASSIGN_OR_RETURN(const size_t size, StartBytes(head));
  HLAUNCH_ASSIGN_OR_RETURN(const std::string fields, ReadStdin(size, deadline));
  return DecodeStart(fields);
}

void SetLimits(const StartMessage& message) {
  for (const std::string& entry : message.limits) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(entry, absl::MaxSplits(':', 1));
    int number = 0;
    uint64_t soft = 0;
    rlimit limit = {};
    if (!absl::SimpleAtoi(pair.first, &number) || !absl::SimpleAtoi(pair.second, &soft) ||
        number < 0 || number >= RLIM_NLIMITS) {
      continue;
    }
    const auto which = static_cast<__rlimit_resource_t>(number);
    if (::getrlimit(which, &limit) != 0) continue;
    limit.rlim_cur = std::min<rlim_t>(soft, limit.rlim_max);  // No more than this host allows.
    ::setrlimit(which, &limit);
  }
}

std::vector<std::string> ChildEnvironment(const StartMessage& message) {
  std::map<std::string, std::string> all;
  const auto add = [&all](const std::string& entry) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(entry, absl::MaxSplits('=', 1));
    all[pair.first] = pair.second;
  };
  for (const std::string& entry : Environment::OfThisProcess().Without(kEnvToken)) add(entry);
  // These would name other hosts, another secret, another keeper and another job's folder.
  for (const char* name : {kEnvHosts, kEnvTokenFile, kEnvKeeperFd, kEnvDetached}) all.erase(name);
  const std::string own = std::exchange(all[kEnvPython], "");
  for (const std::string& entry : message.environment) add(entry);
  // The Python of this host's hlaunch, if that lies in an environment, else that of the terminal's.
  std::string& python = all[kEnvPython];
  if (!own.empty()) {
    python = own;
  } else if (!python.empty() && ::access(python.c_str(), X_OK) != 0) {
    LogWarning(
        absl::StrCat(PrintableLine(python),
                     ", which hlaunch runs scripts by where the job was started, is not on ",
                     "this host: what python3 is here runs instead; PYTHON_EXEC names another"));
    python.clear();
  }
  if (python.empty()) all.erase(kEnvPython);
  if (!message.token.empty()) all[kEnvToken] = message.token;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

}  // namespace hlaunch
