// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/grpc/program_to_push.h"

#include <openssl/evp.h>

#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "launcher/mpi/elf_needs.h"
#include "launcher/words/programs.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxProgram = 512 << 20;

}  // namespace

absl::StatusOr<std::shared_ptr<const PushedProgram>> ProgramToPush() {
  const auto needs = ReadElfNeeds(kThisProgram);
  if (needs.ok() && !needs->libraries.empty()) {
    return absl::FailedPreconditionError(
        "--push: this hlaunch needs shared libraries, which a host may not have; build it as it is "
        "released (cmake --preset release), or install it on the hosts");
  }
  auto program = std::make_shared<PushedProgram>();
  std::ifstream file(kThisProgram, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.is_open() ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size <= 0 || static_cast<size_t>(size) > kMaxProgram) {
    return absl::ResourceExhaustedError("--push: this hlaunch's own program cannot be read");
  }
  const size_t blocks = (static_cast<size_t>(size) + kPushBlock - 1) / kPushBlock;
  program->bytes.resize(blocks * kPushBlock);
  file.seekg(0);
  file.read(program->bytes.data(), size);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int digest_size = 0;
  if (file.gcount() != size || EVP_Digest(program->bytes.data(), program->bytes.size(), digest,
                                          &digest_size, EVP_sha256(), nullptr) != 1) {
    return absl::ResourceExhaustedError("--push: this hlaunch's own program cannot be read");
  }
  program->sha256 =
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), digest_size));
  return std::shared_ptr<const PushedProgram>(std::move(program));
}

}  // namespace hlaunch
