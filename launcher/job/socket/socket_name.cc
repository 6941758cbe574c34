// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/socket_name.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kPrefix = "hlaunch-job/";
constexpr size_t kMostSockets = 4096;
constexpr uint32_t kListens = 0x10000;  // The kernel's __SO_ACCEPTCON.

// The name in a line of /proc/net/unix; unset if it is another socket, or nobody listens there.
std::optional<JobSocketName> NameIn(absl::string_view line) {
  // Num RefCount Protocol Flags Type St Inode Path
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
  uint32_t flags = 0;
  if (fields.size() != 8 || !absl::SimpleHexAtoi(fields[3], &flags)) return std::nullopt;
  absl::string_view name = fields[7];
  if ((flags & kListens) == 0 || !absl::ConsumePrefix(&name, "@")) return std::nullopt;
  absl::string_view rest = name;
  if (!absl::ConsumePrefix(&rest, kPrefix)) return std::nullopt;
  uint32_t uid = 0;
  pid_t pid = 0;
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, absl::MaxSplits('/', 1));
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &uid)) return std::nullopt;
  if (!absl::SimpleAtoi(parts[1].substr(0, parts[1].find('-')), &pid)) return std::nullopt;
  return JobSocketName{std::string(name), uid, pid};
}

}  // namespace

JobSocketName NewJobSocketName(uid_t uid, pid_t pid, uint64_t random) {
  return {absl::StrCat(kPrefix, uid, "/", pid, "-", absl::Hex(random, absl::kZeroPad16)), uid, pid};
}

std::vector<JobSocketName> JobSocketsIn(absl::string_view proc_net_unix, std::optional<uid_t> uid) {
  std::vector<JobSocketName> names;
  for (const absl::string_view line : absl::StrSplit(proc_net_unix, '\n')) {
    std::optional<JobSocketName> name = NameIn(line);
    if (!name || (uid && name->uid != *uid)) continue;
    if (std::find(names.begin(), names.end(), *name) != names.end()) continue;
    names.push_back(*std::move(name));
    if (names.size() == kMostSockets) break;
  }
  return names;
}

AbstractAddress AddressOf(const JobSocketName& name) {
  AbstractAddress address;
  address.name.sun_family = AF_UNIX;
  const size_t size = std::min(name.text.size(), sizeof(address.name.sun_path) - 1);
  std::memcpy(address.name.sun_path + 1, name.text.data(), size);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  return address;
}

std::optional<ucred> CredentialsOfPeer(int socket) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

}  // namespace hlaunch
