// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/words/programs.h"

#include <filesystem>

namespace hlaunch {

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
