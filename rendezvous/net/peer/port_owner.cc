// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/peer/port_owner.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/terminal_text.h"

namespace hlaunch {
namespace {

constexpr char kListens[] = "0A";  // TCP_LISTEN, as /proc/net/tcp has it.

// Adds the inodes of the sockets that listen on the port, from a file like /proc/net/tcp.
void AddListeners(const char* file, uint16_t port, std::set<std::string>* inodes) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, ' ', absl::SkipEmpty());  // sl local remote state ... inode
    if (fields.size() < 10 || fields[3] != kListens) continue;
    const absl::string_view local = fields[1];
    uint32_t found = 0;
    if (absl::SimpleHexAtoi(local.substr(local.rfind(':') + 1), &found) && found == port) {
      inodes->insert(absl::StrCat("socket:[", fields[9], "]"));
    }
  }
}

bool Holds(const std::filesystem::path& process, const std::set<std::string>& inodes) {
  std::error_code error;
  for (std::filesystem::directory_iterator fd(process / "fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code gone;
    if (inodes.count(std::filesystem::read_symlink(fd->path(), gone).string()) > 0) return true;
  }
  return false;
}

}  // namespace

std::optional<PortOwner> FindPortOwner(uint16_t port) {
  std::set<std::string> inodes;
  AddListeners("/proc/net/tcp", port, &inodes);
  AddListeners("/proc/net/tcp6", port, &inodes);
  if (inodes.empty()) return std::nullopt;
  std::error_code error;
  for (std::filesystem::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    PortOwner owner;
    if (!absl::SimpleAtoi(process->path().filename().string(), &owner.pid)) continue;
    if (!Holds(process->path(), inodes)) continue;
    std::ifstream comm(process->path() / "comm");
    std::getline(comm, owner.name);
    owner.name = TerminalText(owner.name);
    return owner;
  }
  return std::nullopt;
}

bool IsHlaunch(const PortOwner& owner) { return absl::StartsWith(owner.name, "hlaunch"); }

}  // namespace hlaunch
