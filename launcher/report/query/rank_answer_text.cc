// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/rank_answer_text.h"

#include <string>
#include <utility>
#include <vector>

#include "launcher/report/query/stacks_text.h"
#include "launcher/report/query/tell_answer.h"
#include "launcher/report/query/who_answered.h"
#include "launcher/report/query/why_text.h"
#include "launcher/text/exit_codes.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

std::string WhyAnswer(const AskOptions& options, JobAnswer answer) {
  const std::vector<RankSnapshot> ranks = TakeSnapshots(answer);
  return options.words.json ? WhyJson(options.words.job_id, options.question, answer, ranks)
                            : WhyText(options.words.job_id, options.question, answer, ranks);
}

std::string StacksAnswer(const AskOptions& options, JobAnswer answer) {
  const std::vector<SharedStack> stacks = TakeStacks(answer);
  return options.words.json ? StackListJson(options.words.job_id, answer, stacks)
                            : StackListText(options.words.job_id, answer, stacks);
}

}  // namespace

int TellRanks(const AskOptions& options, absl::StatusOr<JobAnswer> answer) {
  if (!answer.ok()) {
    return FailToAsk(answer.status(), ExitCodeOf(FailedStep::kAsk, answer.status()));
  }
  const absl::Status known = CheckRanks(options.question, *answer);
  if (!known.ok()) return FailToAsk(known, kExitUsage);
  const bool stacks = options.question.kind == RankQuestion::Kind::kStacks;
  return PrintAnswer(stacks ? StacksAnswer(options, *std::move(answer))
                            : WhyAnswer(options, *std::move(answer)));
}

}  // namespace hlaunch
