// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/daemon/daemon_words.h"

#include <unistd.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/cluster/daemon/daemon_config.h"
#include "launcher/text/version.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

const OptionRow kCommandLineRows[] = {
    {"", "", "--folder", "DIR", "this host's certificate and its head's place (/var/lib/hlaunchd)",
     nullptr},
    {"", "", "--parts", "DIR", "the parts of jobs that run here (/var/spool/hlaunch)", nullptr},
    {"", "", "--socket", "FILE", "where users ask (/run/hlaunch/hlaunchd.sock)", nullptr},
    {"", "", "--config", "FILE", "what the administrator decided (/etc/hlaunch/hlaunchd.conf)",
     nullptr},
    {"", "", "--hlaunch", "FILE", "the program that runs jobs (beside this one, or in bin/)",
     nullptr},
    {"", "", "--sysroot", "DIR", "read of devices what DIR/sys, DIR/proc and DIR/dev describe",
     nullptr},
    {"", "-v", "--verbose", "", "say more", nullptr},
    {"", "-V", "--version", "", "print the version", nullptr},
    {"", "-h", "--help", "", "print this text", nullptr},
};

std::string Help() {
  return absl::StrCat(
      "usage: hlaunchd [options]\n"
      "       hlaunchd head [options]\n\n"
      "The node daemon of your own cluster: brings the questions of this host's\n"
      "users to the head, and starts here what the head decides, as the user who asked.\n"
      "It runs as root, from hlaunchd.service; jobs go on without it. `hlaunch cluster\n"
      "init` and `hlaunch cluster join` set it up. With the word head it is the head of\n"
      "the cluster (hlaunchd head --help).\n\n",
      DescribeOptions(kCommandLineRows), "\nSettings, in hlaunchd.conf, a line each:\n",
      DescribeDaemonConfig(),
      "\nWhat is in parentheses holds without the line, and '#' begins a remark. They count\n"
      "after `systemctl restart hlaunchd`, which leaves jobs alone.\n"
      "\nWhatever least-uid says, nothing runs here for users with the numbers 61184 to\n"
      "65519, which systemd gives to services, nor for 65534, nobody.\n");
}

}  // namespace

absl::StatusOr<DaemonOptions> ParseDaemonOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(const TypedWords read,
                           ReadWords("hlaunchd", kCommandLineRows, words, OptionPlace::kAnywhere));
  if (!read.rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("hlaunchd takes options only, and here is ", read.rest[0]));
  }
  DaemonOptions options;
  if (read.Has("--help")) options.text_to_print = Help();
  if (read.Has("--version")) options.text_to_print = absl::StrCat("hlaunchd ", VersionText(), "\n");
  options.folder = read.Get("--folder", options.folder);
  options.parts = read.Get("--parts", options.parts);
  options.socket = read.Get("--socket", options.socket);
  options.config = read.Get("--config", options.config);
  options.program = read.Get("--hlaunch", "");
  options.sysroot = read.Get("--sysroot", "");
  options.verbose = read.Has("--verbose");
  for (std::string* path : {&options.folder, &options.parts, &options.program}) {
    std::error_code error;
    if (path->empty()) continue;
    const auto whole = std::filesystem::absolute(*path, error).lexically_normal();
    if (error) return absl::InvalidArgumentError(absl::StrCat(*path, ": ", error.message()));
    *path = whole.string();
  }
  return options;
}

std::string FindHlaunch(absl::string_view path_of_daemon) {
  const auto folder = std::filesystem::path(std::string(path_of_daemon)).parent_path();
  const std::string beside = (folder / "hlaunch").string();
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  return (folder.parent_path() / "bin" / "hlaunch").string();
}

}  // namespace hlaunch
