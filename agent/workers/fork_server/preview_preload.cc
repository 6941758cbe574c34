// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/fork_server/preview_preload.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "agent/workers/fork_server/python_side.h"
#include "agent/workers/process/tool_run.h"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);

}  // namespace

PreloadPreview PreviewPreload(const ForkServerPlan& plan) {
  const ToolAnswer answer = RunTool({plan.command.argv[0], "-c", PreviewScript(),
                                     NamesOf(plan.preload), KindOf(plan.call), plan.call.what},
                                    kPatience, plan.command.env);
  PreloadPreview preview;
  bool whole = false;
  absl::string_view last;
  for (absl::string_view line : absl::StrSplit(answer.text, '\n', absl::SkipEmpty())) {
    last = line;
    whole = whole || line == "hlaunch's end";
    if (!absl::ConsumePrefix(&line, "hlaunch's answer: ")) continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const absl::string_view why = absl::StripAsciiWhitespace(parts.second);
    if (why.empty()) {
      preview.taken.push_back(parts.first);
    } else {
      preview.left.emplace_back(parts.first, std::string(why));
    }
  }
  if (!whole) {
    preview.problem = answer.text.empty() ? absl::StrCat(plan.command.argv[0], " does not tell")
                                          : std::string(last);
  }
  return preview;
}

std::string ToText(const PreloadPreview& preview) {
  if (!preview.problem.empty()) return absl::StrCat("not known: ", preview.problem);
  std::string text = preview.taken.empty() ? "nothing" : absl::StrJoin(preview.taken, ", ");
  for (const auto& [name, why] : preview.left) absl::StrAppend(&text, "; not ", name, ": ", why);
  return text;
}

}  // namespace hlaunch
