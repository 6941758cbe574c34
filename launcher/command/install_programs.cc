// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/install_programs.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "agent/mpi/serve/pmix_words.h"
#include "launcher/text/exit_codes.h"
#include "launcher/text/programs.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;

// The names of other launchers that hlaunch replaces; see ProgramName and IsMpirunName.
constexpr const char* kAliases[] = {"torchrun", "mpirun", "mpiexec", "mpiexec.hydra"};
// The programs that a node of a job needs, and the one that only Open MPI programs need: it is not
// in every build.
constexpr const char* kPrograms[] = {"hlaunch", "hlaunch-agent", kPmixProgram};

absl::Status Cannot(absl::string_view what, const fs::path& path, const std::error_code& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot ", what, " ", path.string(), ": ", why.message()));
}

absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? Cannot("make the folder", folder, error) : absl::OkStatus();
}

absl::Status MakeLink(const fs::path& self, const fs::path& link) {
  std::error_code error;
  if (fs::read_symlink(link, error) == self) return absl::OkStatus();
  if (fs::exists(fs::symlink_status(link, error))) {
    return absl::AlreadyExistsError(absl::StrCat(link.string(),
                                                 " is there already, and is no link to ",
                                                 self.string(), ": remove it first"));
  }
  fs::create_symlink(self, link, error);
  return error ? Cannot("make the link", link, error) : absl::OkStatus();
}

// Returns the path of the program `name` as `self` finds it; empty if there is none.
fs::path FindProgram(const fs::path& self, const std::string& name) {
  if (self.filename() == name) return self;
  for (const std::string& place : PlacesOfProgram(self.string(), name)) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return {};
}

// Copies to a draft and renames it, so that a running program can be replaced.
absl::Status CopyProgram(const fs::path& from, const fs::path& to) {
  const fs::path draft = absl::StrCat(to.string(), ".", ::getpid());
  std::error_code error;
  fs::remove(draft, error);
  fs::copy_file(from, draft, error);
  if (!error) fs::rename(draft, to, error);
  if (!error) return absl::OkStatus();
  std::error_code ignored;
  fs::remove(draft, ignored);
  return Cannot("copy", from, error);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> InstallLinks(const std::string& self,
                                                      const std::string& folder) {
  HLAUNCH_RETURN_IF_ERROR(MakeFolder(folder));
  std::vector<std::string> links;
  for (const char* alias : kAliases) {
    links.push_back(fs::path(folder) / alias);
    HLAUNCH_RETURN_IF_ERROR(MakeLink(self, links.back()));
  }
  return links;
}

absl::StatusOr<std::vector<std::string>> InstallCopies(const std::string& self,
                                                       const std::string& folder) {
  HLAUNCH_RETURN_IF_ERROR(MakeFolder(folder));
  std::vector<std::string> copies;
  for (const char* name : kPrograms) {
    const fs::path from = FindProgram(self, name);
    if (from.empty() && absl::string_view(name) == kPmixProgram) continue;
    if (from.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no program ", name, " beside ", self));
    }
    copies.push_back(fs::path(folder) / name);
    HLAUNCH_RETURN_IF_ERROR(CopyProgram(from, copies.back()));
  }
  return copies;
}

int InstallPrograms(const InsteadOfJob& wanted) {
  const std::string self = PathOfThisProgram();
  const auto done = wanted.install_links.empty() ? InstallCopies(self, wanted.install_copies)
                                                 : InstallLinks(self, wanted.install_links);
  if (!done.ok()) {
    LogError(done.status().message());
    return kExitUsage;
  }
  for (const std::string& path : *done) std::printf("%s\n", path.c_str());
  return FlushStdout();
}

}  // namespace hlaunch
