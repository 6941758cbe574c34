// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/program_to_push.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "agent/mpi/serve/pmix_words.h"
#include "launcher/environment/mpi/carried_pmix.h"
#include "launcher/environment/mpi/elf_needs.h"
#include "launcher/text/programs.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxProgram = 512 << 20;

absl::StatusOr<std::string> ReadProgram(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.is_open() ? static_cast<std::streamoff>(file.tellg()) : -1;
  std::string bytes;
  if (size > 0 && static_cast<size_t>(size) <= kMaxProgram) {
    bytes.resize(static_cast<size_t>(size));
    file.seekg(0);
    file.read(bytes.data(), size);
  }
  if (bytes.empty() || file.gcount() != size) {
    return absl::ResourceExhaustedError(absl::StrCat("--push: ", path, " cannot be read"));
  }
  return bytes;
}

// hlaunch-pmix from beside this program; empty if hlaunch was built without it.
absl::StatusOr<std::string> ProgramOfPmix() {
  for (const std::string& path : PlacesOfProgram(PathOfThisProgram(), kPmixProgram)) {
    if (::access(path.c_str(), R_OK) == 0) return ReadProgram(path);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PushedProgram>> ProgramToPush() {
  const auto needs = ReadElfNeeds(kThisProgram);
  if (needs.ok() && !needs->libraries.empty()) {
    return absl::FailedPreconditionError(
        "--push: this hlaunch needs shared libraries, which a host may not have; build it as it is "
        "released (cmake --preset release), or install it on the hosts");
  }
  auto program = std::make_shared<PushedProgram>();
  HLAUNCH_ASSIGN_OR_RETURN(program->bytes, ReadProgram(kThisProgram));
  if (!FindCarriedPmix(kThisProgram)) {  // Else this one was sent itself.
    HLAUNCH_ASSIGN_OR_RETURN(const std::string pmix, ProgramOfPmix());
    CarryPmix(pmix, kPushBlock, program->bytes);
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int digest_size = 0;
  if (EVP_Digest(program->bytes.data(), program->bytes.size(), digest, &digest_size, EVP_sha256(),
                 nullptr) != 1) {
    return absl::ResourceExhaustedError("--push: no checksum of this hlaunch's own program");
  }
  program->sha256 =
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), digest_size));
  return std::shared_ptr<const PushedProgram>(std::move(program));
}

}  // namespace hlaunch
