// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/system_journal.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdint>
#include <thread>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr char kSocket[] = "/run/systemd/journal/socket";

// A length in the byte order of the protocol, whatever this machine's is.
std::string LittleEndian(uint64_t number) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

}  // namespace

bool IsJournal(int fd, const char* journal_stream) {
  struct stat info = {};
  return journal_stream != nullptr && ::fstat(fd, &info) == 0 &&
         absl::StrCat(info.st_dev, ":", info.st_ino) == journal_stream;
}

std::string JournalEntry(const JournalFields& fields) {
  std::string entry;
  for (const auto& [name, value] : fields) {
    if (value.find('\n') == value.npos) {
      absl::StrAppend(&entry, name, "=", value, "\n");
    } else {
      absl::StrAppend(&entry, name, "\n", LittleEndian(value.size()), value, "\n");
    }
  }
  return entry;
}

UniqueFd OpenJournal() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  absl::string_view(kSocket).copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    socket.Close();
  }
  return socket;
}

bool AwaitJournal(int journal, Duration limit) {
  const Instant end = MonotonicClock().Now() + limit;
  while (true) {
    int waiting = 0;  // Bytes, including the kernel's own bookkeeping.
    if (::ioctl(journal, SIOCOUTQ, &waiting) != 0) return false;
    if (waiting == 0) return true;
    if (MonotonicClock().Now() >= end) return false;
    // No event tells that the peer has read.
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace hlaunch
