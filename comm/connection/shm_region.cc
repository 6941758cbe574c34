// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/connection/shm_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "proto/base/status_macros.h"

namespace hlaunch {
namespace shm {

void Wake(int socket) { ::send(socket, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

void SendNotice(int socket, const Notice& notice) {
  const NoticePacket packet = Pack(notice);
  ::send(socket, &packet, sizeof packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::vector<Notice> ReadNotices(int socket) {
  std::vector<Notice> notices;
  while (true) {
    NoticePacket packet;
    const ssize_t size = ::recv(socket, &packet, sizeof packet, MSG_DONTWAIT);
    if (size == sizeof packet) {
      notices.push_back(Unpack(packet));
    } else if (size < 0 && errno == ECONNRESET) {
      // The other rank closed the socket without reading this rank's last notice. Its own notices
      // follow this error.
    } else if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
      notices.push_back({Notice::kDisconnected});
      return notices;
    } else if (size < 0 && errno == EAGAIN) {
      return notices;
    }
  }
}

}  // namespace shm

namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

absl::StatusOr<shm::Region*> MapFd(int fd) {
  void* const at = ::mmap(nullptr, sizeof(shm::Region), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap of shared memory");
  return static_cast<shm::Region*>(at);
}

}  // namespace

absl::StatusOr<ShmMapping> ShmMapping::Make() {
  UniqueFd fd(::memfd_create("hlaunch-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, "memfd_create");
  if (::ftruncate(fd.get(), sizeof(shm::Region)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return absl::ErrnoToStatus(errno, "shared memory");
  }
  HLAUNCH_ASSIGN_OR_RETURN(shm::Region * region, MapFd(fd.get()));
  return ShmMapping(std::move(fd), region);
}

absl::StatusOr<ShmMapping> ShmMapping::Map(UniqueFd fd) {
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals ||
      ::lseek(fd.get(), 0, SEEK_END) != static_cast<off_t>(sizeof(shm::Region))) {
    return absl::InvalidArgumentError("the descriptor is not shared memory of this version");
  }
  HLAUNCH_ASSIGN_OR_RETURN(shm::Region * region, MapFd(fd.get()));
  return ShmMapping(std::move(fd), region);
}

ShmMapping::ShmMapping(ShmMapping&& other) noexcept
    : fd_(std::move(other.fd_)), region_(std::exchange(other.region_, nullptr)) {}

ShmMapping::~ShmMapping() {
  if (region_ != nullptr) ::munmap(region_, sizeof(shm::Region));
}

}  // namespace hlaunch
