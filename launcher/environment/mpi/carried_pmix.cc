// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/carried_pmix.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "agent/mpi/serve/pmix_words.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

constexpr unsigned kRuns = 0x10;  // MFD_EXEC, of Linux 6.3.

// The last bytes of a program that carries hlaunch-pmix.
struct Label {
  char magic[16] = {'h', 'l', 'a', 'u', 'n', 'c', 'h', '-', 'p', 'm', 'i', 'x', 0, 0, 0, 1};
  CarriedPmix where;
};
static_assert(sizeof(Label) == 32);

std::optional<CarriedPmix> Find(int fd) {
  struct stat about = {};
  Label label;
  if (::fstat(fd, &about) != 0 || about.st_size < static_cast<off_t>(sizeof label)) return {};
  const auto end = static_cast<uint64_t>(about.st_size) - sizeof label;
  if (::pread(fd, &label, sizeof label, static_cast<off_t>(end)) != sizeof label) return {};
  if (std::memcmp(label.magic, Label().magic, sizeof label.magic) != 0) return {};
  if (label.where.size == 0 || label.where.size > end ||
      label.where.offset > end - label.where.size)
    return {};
  return label.where;
}

// A file in memory that may be run, also where the system wants to be told that.
UniqueFd FileInMemory() {
  const int fd = ::memfd_create(kPmixProgram, MFD_CLOEXEC | kRuns);
  if (fd >= 0 || errno != EINVAL) return UniqueFd(fd);
  return UniqueFd(::memfd_create(kPmixProgram, MFD_CLOEXEC));
}

bool Copy(int from, const CarriedPmix& where, int to) {
  auto at = static_cast<off_t>(where.offset);
  for (uint64_t left = where.size; left > 0;) {
    const ssize_t copied = ::sendfile(to, from, &at, left);
    if (copied < 0 && errno == EINTR) continue;
    if (copied == 0) errno = EIO;
    if (copied <= 0) return false;
    left -= static_cast<uint64_t>(copied);
  }
  return true;
}

int Fail(const char* what) {
  const std::string why = absl::StrCat("cannot ", what, ": ", std::strerror(errno));
  std::puts(ToLine({PmixNews::Kind::kBroken, -1, 0, why}).c_str());
  return kExitInternal;
}

}  // namespace

void CarryPmix(absl::string_view pmix, size_t block, std::string& program) {
  Label label;
  label.where = {program.size(), pmix.size()};
  absl::StrAppend(&program, pmix);
  const size_t blocks = (program.size() + sizeof label + block - 1) / block;
  program.resize(blocks * block);
  std::memcpy(program.data() + program.size() - sizeof label, &label, sizeof label);
}

std::optional<CarriedPmix> FindCarriedPmix(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() ? Find(file.get()) : std::nullopt;
}

int BecomeCarriedPmix(int argc, char** argv) {
  const UniqueFd self(::open(kCarriedPmix, O_RDONLY | O_CLOEXEC));
  if (!self.valid()) return Fail("read this program");
  const std::optional<CarriedPmix> where = Find(self.get());
  if (argc < 2 || !where) {
    errno = ENOENT;
    return Fail("find hlaunch-pmix in this program");
  }
  const UniqueFd file = FileInMemory();
  if (!file.valid()) return Fail("make a file in memory");
  if (!Copy(self.get(), *where, file.get())) return Fail("copy hlaunch-pmix to memory");
  static char name[] = "hlaunch-pmix";
  argv[1] = name;
  ::execv(absl::StrCat("/proc/self/fd/", file.get()).c_str(), argv + 1);
  return Fail("run hlaunch-pmix from memory (it needs this system's glibc 2.28 or newer)");
}

}  // namespace hlaunch
