// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Any text as --also, as a file of --app or --rankfile, or as a command line of mpirun gives
// programs within their limits or one line of text, never a crash. A program that was written is
// read back as the same.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/mpirun/translate_mpirun.h"
#include "launcher/text/other_program.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

void CheckRefusal(const absl::Status& status) {
  HLAUNCH_CHECK(absl::IsInvalidArgument(status));
  HLAUNCH_CHECK(!status.message().empty() && !absl::StrContains(status.message(), "\n"));
}

void CheckProgram(absl::string_view text) {
  const auto wish = ParseOtherProgram(text);
  if (!wish.ok()) return CheckRefusal(wish.status());
  HLAUNCH_CHECK(wish->ranks >= 1 && wish->ranks <= kMostRanksOfProgram);
  const auto again = ParseOtherProgram(OtherProgramText(*wish));
  HLAUNCH_CHECK(again.ok() && again->ranks == wish->ranks && again->command == wish->command &&
                again->variables == wish->variables && again->directory == wish->directory);
}

void CheckLine(const std::vector<std::string>& words, const std::string& file) {
  const auto line =
      TranslateMpirun(words, Environment({"A=1"}), [&file](const std::string&) { return file; });
  if (!line.ok()) return CheckRefusal(line.status());
  for (const std::string& word : line->words) {
    if (absl::StartsWith(word, "--also=")) {
      HLAUNCH_CHECK(ParseOtherProgram(word.substr(7)).ok());
    }
  }
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  hlaunch::CheckProgram(text);
  hlaunch::CheckLine({"--app", "file"}, text);
  hlaunch::CheckLine({"--rankfile", "file", "x"}, text);
  hlaunch::CheckLine(absl::StrSplit(text, ' ', absl::SkipEmpty()), "");
  return 0;
}
