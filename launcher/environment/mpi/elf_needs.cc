// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/elf_needs.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxSegments = 64;
constexpr size_t kMaxDynamic = 4096;      // Entries.
constexpr size_t kMaxStrings = 64 << 20;  // Bytes of the string table.
constexpr size_t kMaxNeeded = 256;        // Libraries.
constexpr size_t kMaxText = 4096;         // Of a library's name, or a search path.

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not an ELF file that can be read: ", what));
}

// Reads `count` entries of type T at `offset`.
template <typename T>
absl::StatusOr<std::vector<T>> ReadTable(ReadAt read, uint64_t offset, size_t count) {
  const std::string bytes = read(offset, count * sizeof(T));
  if (bytes.size() != count * sizeof(T)) return Damaged("it ends too early");
  std::vector<T> table(count);
  if (count > 0) std::memcpy(table.data(), bytes.data(), bytes.size());
  return table;
}

// The offset in the file of the address `address` in memory; unset if no segment contains it.
std::optional<uint64_t> OffsetOf(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const uint64_t within = address - segment.p_vaddr;
    if (within >= segment.p_filesz || segment.p_offset > ~uint64_t{0} / 2 ||
        within > ~uint64_t{0} / 2) {
      continue;
    }
    return segment.p_offset + within;
  }
  return std::nullopt;
}

// The text at `offset` of the string table that begins at `strings`.
absl::StatusOr<std::string> TextAt(ReadAt read, uint64_t strings, uint64_t offset) {
  if (offset >= kMaxStrings) return Damaged("a name lies outside of its table");
  const std::string bytes = read(strings + offset, kMaxText);
  const size_t end = bytes.find('\0');
  if (end == bytes.npos) return Damaged("a name without an end");
  return bytes.substr(0, end);
}

}  // namespace

absl::StatusOr<ElfNeeds> ReadElfNeeds(ReadAt read) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<Elf64_Ehdr> header, ReadTable<Elf64_Ehdr>(read, 0, 1));
  const Elf64_Ehdr& elf = header[0];
  constexpr auto kOwnOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
      elf.e_ident[EI_DATA] != kOwnOrder || elf.e_phentsize != sizeof(Elf64_Phdr)) {
    return Damaged("it is none of this kind");
  }
  if (elf.e_phnum > kMaxSegments) return Damaged("too many segments");
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<Elf64_Phdr> segments,
                           ReadTable<Elf64_Phdr>(read, elf.e_phoff, elf.e_phnum));
  ElfNeeds needs;
  const auto dynamic =
      std::find_if(segments.begin(), segments.end(),
                   [](const Elf64_Phdr& segment) { return segment.p_type == PT_DYNAMIC; });
  if (dynamic == segments.end()) return needs;  // Static.
  const size_t count = std::min<uint64_t>(dynamic->p_filesz / sizeof(Elf64_Dyn), kMaxDynamic);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<Elf64_Dyn> entries,
                           ReadTable<Elf64_Dyn>(read, dynamic->p_offset, count));
  std::vector<uint64_t> names;
  std::optional<uint64_t> strings, runpath, rpath;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED && names.size() < kMaxNeeded) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) strings = OffsetOf(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_RUNPATH) runpath = entry.d_un.d_val;
    if (entry.d_tag == DT_RPATH) rpath = entry.d_un.d_val;
  }
  if (!strings) return names.empty() ? absl::StatusOr<ElfNeeds>(needs) : Damaged("it has no names");
  for (const uint64_t name : names) {
    HLAUNCH_ASSIGN_OR_RETURN(std::string library, TextAt(read, *strings, name));
    needs.libraries.push_back(std::move(library));
  }
  if (!runpath) runpath = rpath;
  if (runpath) {
    HLAUNCH_ASSIGN_OR_RETURN(needs.search_path, TextAt(read, *strings, *runpath));
  }
  return needs;
}

absl::StatusOr<ElfNeeds> ReadElfNeeds(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return ReadElfNeeds([&fd](uint64_t offset, size_t size) {
    std::string bytes(size, '\0');
    const bool fits = offset < ~uint64_t{0} / 2;
    const ssize_t got =
        fits ? ::pread(fd.get(), bytes.data(), size, static_cast<off_t>(offset)) : -1;
    bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return bytes;
  });
}

}  // namespace hlaunch
