// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/python_side.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace hlaunch {

// The files of python/, which CMakeLists.txt puts into python_text.cc.
extern const char kForkServerSite[];
extern const char kForkServer[];
extern const char kForkServerPreview[];

namespace {

std::string Server() {
  return absl::StrReplaceAll(kForkServer, {{"@KNOWN@", absl::StrJoin(kKnownToFork, " ")}});
}

absl::Status Cannot(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", why));
}

}  // namespace

absl::Status WritePythonSide(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Cannot(directory, error.message());
  for (const auto& [name, text] : {std::pair("sitecustomize.py", std::string(kForkServerSite)),
                                   std::pair("hlaunch_fork_server.py", Server())}) {
    const std::string path = absl::StrCat(directory, "/", name);
    std::ofstream file(path, std::ios::trunc);
    file << text;
    file.close();
    if (!file) return Cannot(path, std::strerror(errno));
  }
  return absl::OkStatus();
}

std::string PreviewScript() { return absl::StrCat(Server(), kForkServerPreview); }

}  // namespace hlaunch
