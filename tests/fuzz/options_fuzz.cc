// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Command lines, one word per line; PET_NAME=VALUE is a variable and no word. The same text also
// serves as a configuration and as values. Any text gives consistent options or one line of text,
// never a crash.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/option_sources.h"
#include "launcher/cli/options/options.h"
#include "launcher/cli/options/parse_options.h"
#include "launcher/cli/values/option_values.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/job/spec/join_command.h"
#include "launcher/job/spec/make_job_spec.h"
#include "launcher/job/spec/token.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

HostProbes NoHost() {
  return {[] { return 2; }, [] { return std::string("id"); },
          [](const std::string&) {
            return TokenFile{"token", false};
          },
          [](const ScriptRequest& request, const Environment&) { return request.command; }};
}

void CheckRefusal(const absl::Status& status) {
  HLAUNCH_CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  HLAUNCH_CHECK(!status.message().empty() && !absl::StrContains(status.message(), "\n"));
}

void CheckOptions(const Options& options) {
  if (options.text_to_print.has_value()) return;
  HLAUNCH_CHECK(!options.script.command.empty() &&
                !absl::StartsWith(options.script.command[0], "-"));
  HLAUNCH_CHECK(1 <= options.policy.min_nodes &&
                options.policy.min_nodes <= options.policy.max_nodes);
  HLAUNCH_CHECK(options.node.rank.value_or(0) < options.policy.max_nodes);
  HLAUNCH_CHECK(options.policy.lease.loss_limit >= std::chrono::seconds(1));
  const absl::StatusOr<JobSpec> spec = MakeJobSpec(options, Environment(), NoHost());
  if (!spec.ok()) {  // This host has no devices.
    HLAUNCH_CHECK(!options.nproc_word.empty() || options.devices.ids.has_value());
    return;
  }
  HLAUNCH_CHECK(!spec->job_id.empty() && spec->worker.nproc > 0);
  HLAUNCH_CHECK(spec->mode == JobMode::kSingleNode || spec->endpoint.port != 0);
  if (spec->mode != JobMode::kListenAndPrint) return;
  const JoinCommand join = MakeJoinCommand(options, *spec, {"10.0.0.1", 29400});
  HLAUNCH_CHECK(absl::StrContains(join.command, " --rdzv-endpoint 10.0.0.1:29400 "));
}

void ParseLines(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, '\n');
  std::vector<const char*> argv = {"hlaunch"};
  std::vector<std::string> variables;
  for (const std::string& word : words) {
    if (absl::StrContains(word, "--config")) return;  // That would read files of this host.
    if (absl::StartsWith(word, "PET_")) {
      variables.push_back(word);
    } else {
      argv.push_back(word.c_str());
    }
  }
  const absl::StatusOr<Options> options =
      ParseOptions(static_cast<int>(argv.size()), argv.data(), Environment(variables));
  if (options.ok()) return CheckOptions(*options);
  CheckRefusal(options.status());
}

void ReadValues(absl::string_view text) {
  if (const auto found = ParseConfig(text, "file"); !found.ok()) CheckRefusal(found.status());
  if (const auto choice = ParseStreamChoice(text); !choice.ok()) CheckRefusal(choice.status());
  if (const auto signals = ParseSignals(text); !signals.ok()) CheckRefusal(signals.status());
  const auto rotation = ParseRotation(text);
  HLAUNCH_CHECK(!rotation.ok() || rotation->bytes > 0);
  for (const std::string& filter : ParseFilters(text)) HLAUNCH_CHECK(!filter.empty());
}

}  // namespace
}  // namespace hlaunch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  hlaunch::ParseLines(text);
  hlaunch::ReadValues(text);
  return 0;
}
