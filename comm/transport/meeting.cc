// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/meeting.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "comm/transport/shm_link.h"
#include "comm/transport/tcp_link.h"
#include "proto/base/address.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kPrefix = "hlaunch-comm-1";
constexpr size_t kTokenSize = 32;
// More of them at a time are no ranks of ours.
constexpr size_t kMostStrangers = 4096;

// The first thing said on a new connection, as it lies in memory: hosts of one job are alike.
struct Hello {
  char token[kTokenSize];
  Rank rank;
  int32_t stream;  // 0, or the side of a TCP link.
  PullProof proof;
  char host[64];
};
static_assert(std::is_trivially_copyable_v<Hello>);

Hello MakeHello(const MeetingPoint& to, Rank self, const std::string& my_host) {
  Hello hello{};
  to.token.copy(hello.token, sizeof hello.token);
  hello.rank = self;
  hello.proof = MyPullProof();
  my_host.copy(hello.host, sizeof hello.host - 1);
  return hello;
}

absl::Status SystemError(const char* what) {
  const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
  const std::string text = absl::StrCat(what, ": ", std::strerror(errno));
  return exhausted ? absl::ResourceExhaustedError(text) : absl::UnavailableError(text);
}

std::pair<sockaddr_un, socklen_t> AbstractAddress(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  return {address, offsetof(sockaddr_un, sun_path) + 1 + name.size()};
}

absl::StatusOr<UniqueFd> ListenLocally(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("unix socket");
  const auto [address, length] = AbstractAddress(name);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(fd.get(), 4096) != 0) {
    return SystemError("unix socket");
  }
  return fd;
}

// Remaining time for poll; at least a millisecond, so that a deadline in the past is tried once.
int MillisLeft(Instant deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - MonotonicClock().Now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 1, 1 << 30));
}
bool Passed(Instant deadline) { return MonotonicClock().Now() >= deadline; }

// No link if `point` is on another host, or nobody's any more.
absl::StatusOr<std::unique_ptr<OutLink>> DialLocally(const MeetingPoint& point, const Hello& hello,
                                                     Instant deadline) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("unix socket");
  const auto [address, length] = AbstractAddress(point.local_name);
  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return nullptr;
    if (Passed(deadline)) return absl::DeadlineExceededError("too many wait at its door");
    ::poll(nullptr, 0, 1);  // Its queue is full; there is nothing to wait on.
  }
  HLAUNCH_ASSIGN_OR_RETURN(ShmMapping mapping, ShmMapping::Make());

  iovec data{const_cast<Hello*>(&hello), sizeof hello};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int passed = mapping.fd();
  std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  if (::sendmsg(fd.get(), &message, MSG_NOSIGNAL) != sizeof hello) return nullptr;
  return MakeShmOutLink(std::move(fd), std::move(mapping));
}

// A TCP connection that has begun to be made.
absl::StatusOr<UniqueFd> BeginTcp(const MeetingPoint& point) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(point.address.c_str(), std::to_string(point.port).c_str(), &hints, &found) !=
      0) {
    return absl::InvalidArgumentError(absl::StrCat("no address: '", point.address, "'"));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return SystemError("TCP socket");
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    return SystemError(HostPort(point.address, point.port).c_str());
  }
  return fd;
}

absl::StatusOr<UniqueFd> ConnectTcp(const MeetingPoint& point, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd fd, BeginTcp(point));
  const std::string where = HostPort(point.address, point.port);
  pollfd writable{fd.get(), POLLOUT, 0};
  while (::poll(&writable, 1, MillisLeft(deadline)) <= 0) {
    if (Passed(deadline)) {
      return absl::DeadlineExceededError(absl::StrCat("no answer from ", where));
    }
  }
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    errno = error;
    return SystemError(where.c_str());
  }
  return fd;
}

// What opens a side of the link that `hello` began.
OpenSide SidesOf(const MeetingPoint& point, const Hello& hello) {
  return [point, hello](int stream) -> Side {
    auto fd = BeginTcp(point);
    if (!fd.ok()) return {};
    Hello mine = hello;
    mine.stream = stream;
    return {*std::move(fd), std::string(reinterpret_cast<const char*>(&mine), sizeof mine)};
  };
}

// One read of a stranger's hello; for a local one with the descriptor it passed.
ssize_t ReadHello(int socket, void* into, size_t size, UniqueFd* passed) {
  iovec data{into, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  cmsghdr* const header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    *passed = UniqueFd(fd);
  }
  return got;
}

}  // namespace

std::string ToText(const MeetingPoint& point) {
  return absl::StrCat(kPrefix, " ", point.token, " ", point.local_name, " ", point.address, " ",
                      point.port, " ", point.host);
}

absl::StatusOr<MeetingPoint> ParseMeetingPoint(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  uint32_t port = 0;
  if (words.size() != 6 || words[0] != kPrefix || words[1].size() != kTokenSize ||
      words[2].size() > 100 || !absl::SimpleAtoi(words[4], &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the store's word on where a rank is makes no sense: '", text.substr(0, 100),
                     "'; do all ranks run the same version?"));
  }
  return MeetingPoint{words[1], words[2], words[3], static_cast<uint16_t>(port), words[5]};
}

absl::StatusOr<Door> Door::Open(const std::string& address) {
  Door door;
  door.point_.token = absl::StrCat(NewJobId(), NewJobId());
  door.point_.local_name = absl::StrCat("hlaunch-comm-", NewJobId(), NewJobId());
  HLAUNCH_ASSIGN_OR_RETURN(door.local_, ListenLocally(door.point_.local_name));
  HLAUNCH_ASSIGN_OR_RETURN(door.tcp_, hlaunch::Listen(address, 0));
  door.point_.address = address;
  door.point_.port = door.tcp_.port;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  door.point_.host = host;
  return door;
}

void Door::Accept(int listener, bool local) {
  while (strangers_.size() < kMostStrangers) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    strangers_.push_back({std::move(fd), local, {}});
  }
}

std::optional<Caller> Door::Listen(Stranger* stranger, SingleCopy single_copy, bool* show_out) {
  Hello hello;
  UniqueFd passed;
  char part[sizeof hello];
  const ssize_t got =
      ReadHello(stranger->fd.get(), part, sizeof hello - stranger->said.size(), &passed);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (got > 0) stranger->said.append(part, got);
  *show_out = got <= 0 || stranger->local;
  if (got <= 0 || stranger->said.size() < sizeof hello) return std::nullopt;

  *show_out = true;
  std::memcpy(&hello, stranger->said.data(), sizeof hello);
  if (absl::string_view(hello.token, kTokenSize) != point_.token || hello.rank < 0) {
    return std::nullopt;
  }
  const std::string host(hello.host, ::strnlen(hello.host, sizeof hello.host));
  if (!stranger->local) {
    const int on = 1;
    ::setsockopt(stranger->fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (hello.stream != 0) {
      return Caller{hello.rank, host, false, nullptr, hello.stream, std::move(stranger->fd)};
    }
    return Caller{hello.rank, host, false, MakeTcpInLink(std::move(stranger->fd)), 0, UniqueFd()};
  }
  ucred who{};
  socklen_t length = sizeof who;
  if (!passed.valid() ||
      ::getsockopt(stranger->fd.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) {
    return std::nullopt;
  }
  auto mapping = ShmMapping::Map(std::move(passed));
  if (!mapping.ok()) return std::nullopt;
  return Caller{hello.rank,
                host,
                true,
                MakeShmInLink(std::move(stranger->fd), *std::move(mapping), who.pid, hello.proof,
                              single_copy),
                0,
                UniqueFd()};
}

std::vector<Caller> Door::LetIn(SingleCopy single_copy) {
  Accept(local_.get(), true);
  Accept(tcp_.fd.get(), false);
  std::vector<Caller> callers;
  std::erase_if(strangers_, [&](Stranger& stranger) {
    bool show_out = false;
    if (auto caller = Listen(&stranger, single_copy, &show_out))
      callers.push_back(*std::move(caller));
    return show_out;
  });
  return callers;
}

std::vector<int> Door::strangers() const {
  std::vector<int> fds;
  for (const Stranger& stranger : strangers_) fds.push_back(stranger.fd.get());
  return fds;
}

absl::StatusOr<std::unique_ptr<OutLink>> Dial(const MeetingPoint& point, Rank self,
                                              const std::string& my_host, bool shared_memory,
                                              int streams, Instant deadline) {
  const Hello hello = MakeHello(point, self, my_host);
  if (shared_memory) {
    HLAUNCH_ASSIGN_OR_RETURN(std::unique_ptr<OutLink> link, DialLocally(point, hello, deadline));
    if (link != nullptr) return link;
  }
  HLAUNCH_ASSIGN_OR_RETURN(UniqueFd socket, ConnectTcp(point, deadline));
  // It fits into an empty buffer.
  if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    return SystemError("TCP socket");
  }
  return MakeTcpOutLink(std::move(socket), streams, SidesOf(point, hello));
}

}  // namespace hlaunch
