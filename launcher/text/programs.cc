// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/programs.h"

#include <sys/prctl.h>

#include <filesystem>

#include "absl/strings/match.h"

namespace hlaunch {

void NameAfterProgram() {
  char name[16] = {};  // The longest name of the kernel.
  if (::prctl(PR_GET_NAME, name, 0, 0, 0) != 0 || absl::string_view(name) != "exe") return;
  // A program that was replaced or sent here has another file name, or none.
  const std::string program = std::filesystem::path(PathOfThisProgram()).filename();
  const bool is_agent = absl::StartsWith(program, "hlaunch-agent");
  ::prctl(PR_SET_NAME, is_agent ? "hlaunch-agent" : "hlaunch", 0, 0, 0);
}

std::string PathOfThisProgram() {
  std::error_code error;
  return std::filesystem::read_symlink(kThisProgram, error).string();
}

std::vector<std::string> PlacesOfProgram(absl::string_view self, absl::string_view name) {
  const std::filesystem::path folder = std::filesystem::path(std::string(self)).parent_path();
  const std::string file(name);
  const std::filesystem::path prefix =
      file == "hlaunch" ? folder.parent_path().parent_path() : folder.parent_path();
  const std::filesystem::path installed = file == "hlaunch"    ? prefix / "bin" / file
                                          : file == "hlaunchd" ? prefix / "sbin" / file
                                                               : prefix / "libexec/hlaunch" / file;
  return {(folder / file).string(), installed.string()};
}

}  // namespace hlaunch
