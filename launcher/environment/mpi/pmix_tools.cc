// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/pmix_tools.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/mpi/serve/pmix_words.h"
#include "launcher/environment/mpi/carried_pmix.h"
#include "launcher/text/programs.h"

namespace hlaunch {
namespace {

constexpr char kLibrary[] = "libpmix.so.2";  // Of releases 3.x to 6.x.
constexpr absl::string_view kFolders[] = {"/usr/local/lib",
                                          "/usr/lib/x86_64-linux-gnu/pmix2/lib",
                                          "/usr/lib/aarch64-linux-gnu/pmix2/lib",
                                          "/usr/lib/x86_64-linux-gnu",
                                          "/usr/lib/aarch64-linux-gnu",
                                          "/usr/lib64",
                                          "/usr/lib"};

bool IsThere(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }

std::string FindProgramOfPmix() {
  for (const std::string& path : PlacesOfProgram(PathOfThisProgram(), kPmixProgram)) {
    if (IsThere(path)) return path;
  }
  return FindCarriedPmix(kCarriedPmix) ? kCarriedPmix : "";
}

// A release of Open MPI has libpmix beside its own library; its wheel has it in a folder below.
std::vector<std::string> FoldersOfMpi(const std::string& mpi) {
  if (mpi.empty()) return {};
  const std::string folder = mpi.substr(0, mpi.rfind('/'));
  return {folder, absl::StrCat(folder, "/openmpi")};
}

std::string FindLibraryOfPmix(const Environment& environment, const std::string& mpi) {
  std::vector<std::string> folders = FoldersOfMpi(mpi);
  for (const absl::string_view folder :
       absl::StrSplit(environment.Get("LD_LIBRARY_PATH"), ':', absl::SkipEmpty())) {
    folders.emplace_back(folder);
  }
  for (const absl::string_view folder : kFolders) folders.emplace_back(folder);
  for (const std::string& folder : folders) {
    std::string path = absl::StrCat(folder, "/", kLibrary);
    if (IsThere(path)) return path;
  }
  return "";
}

}  // namespace

PmixTools FindPmix(const Environment& environment, const std::string& mpi) {
  PmixTools tools{FindProgramOfPmix(), FindLibraryOfPmix(environment, mpi), ""};
  if (tools.program.empty()) {
    tools.missing = absl::StrCat(kPmixProgram, " is not installed beside hlaunch");
  } else if (tools.library.empty()) {
    tools.missing = absl::StrCat("there is no ", kLibrary,
                                 " here (install libpmix2 on Debian and Ubuntu, pmix on Fedora and "
                                 "RHEL, or put its folder into LD_LIBRARY_PATH)");
  }
  return tools;
}

}  // namespace hlaunch
