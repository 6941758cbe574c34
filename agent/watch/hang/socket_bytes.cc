// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/socket_bytes.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kBufferBytes = 1 << 16;
// Offsets in the kernel's tcp_info.
constexpr size_t kBytesAcked = 120;  // Followed by the bytes received.
constexpr size_t kInfoBytes = kBytesAcked + 2 * sizeof(uint64_t);
constexpr int kRetransmits = 1;  // Of the timers of inet_diag_msg.
constexpr int kMostInVain = 3;   // The third is sent after more than a second.
constexpr size_t kMostAddresses = 8;
constexpr int kMostReads = 1024;  // About 100,000 connections.

// Adds the inodes of its sockets, of all kinds.
void AddSockets(pid_t pid, std::set<uint32_t>* inodes) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(absl::StrCat("/proc/", pid, "/fd"), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry->path(), ignored).string();
    absl::string_view number = target;
    uint32_t inode = 0;
    if (absl::ConsumePrefix(&number, "socket:[") && absl::ConsumeSuffix(&number, "]") &&
        absl::SimpleAtoi(number, &inode)) {
      inodes->insert(inode);
    }
  }
}

bool AskForConnections(const UniqueFd& netlink, uint8_t family) {
  struct {
    nlmsghdr head;
    inet_diag_req_v2 request;
  } message = {};
  message.head.nlmsg_len = sizeof(message);
  message.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.request.sdiag_family = family;
  message.request.sdiag_protocol = IPPROTO_TCP;
  message.request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  message.request.idiag_states = ~0U;
  return ::send(netlink.get(), &message, sizeof(message), 0) == sizeof(message);
}

// glibc's tcp_info ends before these fields.
uint64_t BytesOfInfo(const char* info) {
  uint64_t bytes[2];
  std::memcpy(bytes, info + kBytesAcked, sizeof(bytes));
  return bytes[0] + bytes[1];
}

uint64_t BytesOf(const char* attributes, size_t size) {
  while (size >= sizeof(rtattr)) {
    rtattr head;
    std::memcpy(&head, attributes, sizeof(head));
    if (head.rta_len < sizeof(head) || head.rta_len > size) return 0;
    if (head.rta_type == INET_DIAG_INFO) {
      return head.rta_len < RTA_LENGTH(kInfoBytes) ? 0 : BytesOfInfo(attributes + RTA_LENGTH(0));
    }
    const size_t step = std::min<size_t>(RTA_ALIGN(head.rta_len), size);
    attributes += step;
    size -= step;
  }
  return 0;
}

// "10.0.0.7"; empty if it is of this host alone, or of none.
std::string AddressText(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(family, address, text, sizeof(text));
  absl::string_view words = text;
  absl::ConsumePrefix(&words, "::ffff:");
  if (absl::StartsWith(words, "127.") || words == "0.0.0.0" || words == "::1" || words == "::") {
    return "";
  }
  return std::string(words);
}

void Insert(const std::string& address, std::set<std::string>* addresses) {
  if (!address.empty() && addresses->size() < kMostAddresses) addresses->insert(address);
}

}  // namespace

bool IsUnheard(int timer, int retransmits) {
  return timer == kRetransmits && retransmits >= kMostInVain;
}

void HostConnections::Add(const char* data, size_t size) {
  Connection connection;
  if (size < sizeof(connection.head)) return;
  std::memcpy(&connection.head, data, sizeof(connection.head));
  connection.bytes = BytesOf(data + sizeof(connection.head), size - sizeof(connection.head));
  const uint32_t inode = connection.head.idiag_inode;
  if (inode != 0) connections_[inode] = connection;  // It is 0 for one that nobody has open.
}

// Adds what one answer tells. Returns false if it was the last answer.
bool HostConnections::Take(const char* data, size_t size) {
  while (size >= sizeof(nlmsghdr)) {
    nlmsghdr head;
    std::memcpy(&head, data, sizeof(head));
    if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > size) return false;
    if (head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR) return false;
    Add(data + NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN);
    const size_t step = std::min<size_t>(NLMSG_ALIGN(head.nlmsg_len), size);
    data += step;
    size -= step;
  }
  return true;
}

HostConnections HostConnections::Read() {
  HostConnections all;
  std::vector<char> buffer(kBufferBytes);
  for (const uint8_t family : {AF_INET, AF_INET6}) {
    const UniqueFd netlink(
        ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
    if (!netlink.valid() || !AskForConnections(netlink, family)) return all;
    for (int i = 0; i < kMostReads; ++i) {
      const ssize_t n = ::recv(netlink.get(), buffer.data(), buffer.size(), 0);
      if (n <= 0 || !all.Take(buffer.data(), static_cast<size_t>(n))) break;
    }
  }
  return all;
}

SocketUse HostConnections::Of(const std::vector<pid_t>& pids) const {
  std::set<uint32_t> inodes;
  for (const pid_t pid : pids) AddSockets(pid, &inodes);
  SocketUse use;
  for (const uint32_t inode : inodes) {
    const auto found = connections_.find(inode);
    if (found == connections_.end()) continue;
    const auto& [head, bytes] = found->second;
    use.bytes += bytes;
    Insert(AddressText(head.idiag_family, head.id.idiag_src), &use.addresses);
    if (!IsUnheard(head.idiag_timer, head.idiag_retrans)) continue;
    Insert(AddressText(head.idiag_family, head.id.idiag_dst), &use.unheard);
  }
  return use;
}

SocketUse ReadSockets(const std::vector<pid_t>& pids) { return HostConnections::Read().Of(pids); }

}  // namespace hlaunch
