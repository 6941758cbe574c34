// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/local/host_checks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "agent/health/local/speed.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {
namespace {

constexpr double kGiB = 1 << 30;
constexpr double kLittleRoom = 1.0;     // GiB, for the log files of a day.
constexpr double kLittleShared = 0.25;  // GiB; a container's default is 64 MiB.
constexpr rlim_t kFewFiles = 4096;
constexpr rlim_t kLittleLocked = rlim_t{64} << 20;
constexpr int kQuickRepetitions = 5;
constexpr int kFullRepetitions = 200;
constexpr size_t kMemoryBytes = 64 << 20;
constexpr size_t kBlock = 1 << 20;

double Milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Makes a file without a name in `directory`, so nothing is left behind whatever happens.
UniqueFd MakeNameless(const std::string& directory) {
  UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.valid() || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string name = directory + "/.hlaunch-check-XXXXXX";  // Needed on NFS, for example.
  file = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
  if (file.valid()) ::unlink(name.c_str());
  return file;
}

bool WriteAll(int fd, size_t bytes) {
  const std::string block(std::min(bytes, kBlock), 'x');
  for (size_t done = 0; done < bytes;) {
    const ssize_t wrote = ::write(fd, block.data(), std::min(block.size(), bytes - done));
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

}  // namespace

CheckResult CheckLogDirectory(const std::string& directory, size_t bytes) {
  CheckResult result{"log directory", {}, "GiB", CheckState::kOk, "", ""};
  const auto fail = [&](const std::string& at) {
    result.state = CheckState::kFail;
    result.reason = absl::StrCat("cannot write in ", at, ": ", std::strerror(errno));
    result.advice = "give another --log-dir, or make room there";
    return result;
  };
  std::error_code error;
  std::filesystem::path there = std::filesystem::absolute(directory, error);
  struct stat status = {};
  while (::stat(there.c_str(), &status) != 0 && errno == ENOENT && there.has_relative_path()) {
    there = there.parent_path();
  }
  struct statvfs room = {};
  if (::statvfs(there.c_str(), &room) != 0) return fail(there.string());
  result.value = static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize) / kGiB;
  const UniqueFd file = MakeNameless(there.string());
  const Instant before = std::chrono::steady_clock::now();
  if (!file.valid() || !WriteAll(file.get(), std::max<size_t>(bytes, 4096)) ||
      (bytes > 0 && ::fsync(file.get()) != 0)) {
    return fail(there.string());
  }
  result.reason = absl::StrCat("free in ", there.string());
  if (bytes > 0) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - before;
    absl::StrAppendFormat(&result.reason, ", which takes %.0f MB/s",
                          static_cast<double>(bytes) / 1e6 / std::max(1e-6, seconds.count()));
  }
  if (*result.value < kLittleRoom) {
    result.state = CheckState::kWarn;
    result.advice = "make room there, or give another --log-dir";
  }
  return result;
}

CheckResult CheckSharedMemory(const std::string& directory) {
  CheckResult result{"shared memory", {}, "GiB", CheckState::kOk, "", ""};
  struct statvfs room = {};
  if (::statvfs(directory.c_str(), &room) != 0) {
    result.state = CheckState::kUnknown;
    result.reason = absl::StrCat(directory, ": ", std::strerror(errno));
    return result;
  }
  const auto gib = [&](fsblkcnt_t blocks) {
    return static_cast<double>(blocks) * static_cast<double>(room.f_frsize) / kGiB;
  };
  result.value = gib(room.f_blocks);
  result.reason = absl::StrFormat("in %s, of which %.2f are free", directory, gib(room.f_bavail));
  if (gib(room.f_bavail) < kLittleShared) {
    result.state = CheckState::kWarn;
    result.advice =
        *result.value < kLittleShared
            ? "data loaders need more: start the container with --shm-size or --ipc=host"
            : "remove what ended processes left in it";
  }
  return result;
}

CheckResult CheckLimits(const DeviceFiles& files) {
  CheckResult result{"limits", {}, "files", CheckState::kOk, "", ""};
  rlimit open = {};
  rlimit locked = {};
  if (::getrlimit(RLIMIT_NOFILE, &open) != 0 || ::getrlimit(RLIMIT_MEMLOCK, &locked) != 0) {
    result.state = CheckState::kUnknown;
    return result;
  }
  result.value = static_cast<double>(open.rlim_max);
  const std::string memory =
      locked.rlim_cur == RLIM_INFINITY ? "unlimited" : absl::StrCat(locked.rlim_cur >> 20, " MiB");
  result.reason = absl::StrCat("locked memory: ", memory);
  if (open.rlim_max < kFewFiles) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrCat("a process may open ", open.rlim_max, " files");
    result.advice = absl::StrCat("raise ulimit -Hn to ", kFewFiles, " or more");
  } else if (locked.rlim_cur < kLittleLocked && !files.List("/sys/class/infiniband").empty()) {
    result.state = CheckState::kWarn;
    result.reason = absl::StrCat("there is RDMA here, and a process may lock ", memory);
    result.advice = "set ulimit -l unlimited (LimitMEMLOCK=infinity, --ulimit memlock=-1)";
  }
  return result;
}

CheckResult CheckClock() {
  CheckResult result{"clock", {}, "ms", CheckState::kOk, "", ""};
  timex clock = {};
  const int state = ::adjtimex(&clock);
  if (state < 0 || state == TIME_ERROR || (clock.status & STA_UNSYNC) != 0) {
    result.state = CheckState::kUnknown;
    result.reason = "nothing tells the kernel that it keeps this clock";
    return result;
  }
  result.value = static_cast<double>(clock.maxerror) / 1000;
  result.reason = "off at most";
  return result;
}

CheckResult CheckName(const std::string& host) {
  CheckResult result{"name", {}, "ms", CheckState::kOk, "", ""};
  const Instant before = std::chrono::steady_clock::now();
  const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(host);
  result.value = Milliseconds(std::chrono::steady_clock::now() - before);
  if (addresses.ok()) {
    result.reason = absl::StrCat(host, " is ", addresses->front());
  } else {
    result.state = CheckState::kFail;
    result.reason = std::string(addresses.status().message());
    result.advice = "fix /etc/hosts or the name server, or give an address";
  }
  return result;
}

CheckResult CheckProcessor(bool full) {
  CheckResult result{"processor", {}, "ms", CheckState::kOk, "", ""};
  const CpuSpeed speed = MeasureCpu(full ? kFullRepetitions : kQuickRepetitions);
  result.value = Milliseconds(speed.time);
  if (speed.exact) {
    result.reason = "for fixed work of one core";
  } else {
    result.state = CheckState::kFail;
    result.reason = "it computed a wrong result";
    result.advice = "take this node out of use: whatever it computes may be wrong";
  }
  return result;
}

CheckResult CheckMemorySpeed() {
  CheckResult result{"memory speed", {}, "GB/s", CheckState::kOk, "", ""};
  const double speed = MeasureMemory(kMemoryBytes, 3) / 1e9;
  if (speed > 0) {
    result.value = speed;
    result.reason = "copied by one core";
  } else {
    result.state = CheckState::kUnknown;
    result.reason = "there is not memory enough to measure it";
  }
  return result;
}

}  // namespace hlaunch
