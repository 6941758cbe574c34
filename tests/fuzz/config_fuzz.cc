// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// The text of a --config file. Any text gives consistent options, each with its source, or one line
// of text, never a crash.

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/cli/options/option_sources.h"
#include "launcher/cli/options/options.h"
#include "launcher/cli/options/parse_options.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// A file in memory that is rewritten for each text, and its name.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("config", MFD_CLOEXEC)) { HLAUNCH_CHECK(fd_ >= 0); }

  std::string Write(absl::string_view text) {
    HLAUNCH_CHECK(::ftruncate(fd_, 0) == 0);
    HLAUNCH_CHECK(::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    return absl::StrCat("/proc/self/fd/", fd_);
  }

 private:
  const int fd_;
};

void CheckOptions(const Options& options, const std::string& file) {
  HLAUNCH_CHECK(!options.text_to_print.has_value());  // A file cannot ask for help.
  HLAUNCH_CHECK(!options.script.command.empty() && !options.script.command[0].empty());
  HLAUNCH_CHECK(1 <= options.policy.min_nodes &&
                options.policy.min_nodes <= options.policy.max_nodes);
  HLAUNCH_CHECK(options.node.rank.value_or(0) < options.policy.max_nodes);
  HLAUNCH_CHECK(options.policy.lease.loss_limit >= std::chrono::seconds(1));
  HLAUNCH_CHECK(options.store.server.limits.value_bytes <= options.store.server.limits.total_bytes);
  for (const std::string& source : options.sources) {
    HLAUNCH_CHECK(absl::StartsWith(source, file) && !absl::StrContains(source, "\n"));
  }
}

void CheckRefusal(const absl::Status& status) {
  HLAUNCH_CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  HLAUNCH_CHECK(!status.message().empty() && !absl::StrContains(status.message(), "\n"));
}

// `script` follows the options; if null, the file's command counts.
void CheckFile(const std::string& file, const char* script) {
  std::vector<const char*> argv = {"hlaunch", "--config", file.c_str()};
  if (script != nullptr) argv.push_back(script);
  const absl::StatusOr<Options> options = ParseOptions(static_cast<int>(argv.size()), argv.data(),
                                                       Environment(std::vector<std::string>()));
  if (options.ok()) return CheckOptions(*options, file);
  CheckRefusal(options.status());
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static hlaunch::MemoryFile memory;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<hlaunch::Config> config = hlaunch::ParseConfig(text, "file");
  if (!config.ok()) {  // The slow rest would fail likewise.
    hlaunch::CheckRefusal(config.status());
    return 0;
  }
  const std::string file = memory.Write(text);
  if (!config->command.empty()) hlaunch::CheckFile(file, nullptr);
  hlaunch::CheckFile(file, "train.py");
  return 0;
}
