// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/exit_codes.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/log.h"
#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

using absl::StatusCode;

struct Row {
  StatusCode status;
  int prepare, meet, ask;
};
constexpr Row kRows[] = {
    {StatusCode::kOk, kExitOk, kExitOk, kExitOk},
    {StatusCode::kInvalidArgument, kExitUsage, kExitBadEndpoint, kExitBadEndpoint},
    {StatusCode::kNotFound, kExitNotFound, kExitBadEndpoint, kExitRefused},
    {StatusCode::kPermissionDenied, kExitNotExecutable, kExitBadEndpoint, kExitRefused},
    {StatusCode::kUnauthenticated, kExitUsage, kExitUsage, kExitBadEndpoint},
    {StatusCode::kFailedPrecondition, kExitNotExecutable, kExitBadEndpoint, kExitBadEndpoint},
    {StatusCode::kAlreadyExists, kExitInternal, kExitPortInUse, kExitBadEndpoint},
    {StatusCode::kResourceExhausted, kExitNoResources, kExitNoResources, kExitBadEndpoint},
    {StatusCode::kInternal, kExitInternal, kExitInternal, kExitBadEndpoint},
};
constexpr Row kOther = {StatusCode::kUnknown, kExitInternal, kExitBadEndpoint, kExitBadEndpoint};

}  // namespace

int ExitCodeOf(FailedStep step, const absl::Status& status) {
  Row found = kOther;
  for (const Row& row : kRows) {
    if (row.status == status.code()) found = row;
  }
  switch (step) {
    case FailedStep::kPrepare:
      return found.prepare;
    case FailedStep::kMeet:
      return found.meet;
    case FailedStep::kAsk:
      return found.ask;
  }
  return kExitInternal;
}

std::string OwnExitCodes() {
  std::vector<std::string> ranges;
  for (auto code = std::begin(kOwnExitCodes); code != std::end(kOwnExitCodes);) {
    const int first = *code;
    int last = first;
    while (++code != std::end(kOwnExitCodes) && *code == last + 1) ++last;
    ranges.push_back(last == first ? absl::StrCat(first) : absl::StrCat(first, " to ", last));
  }
  const std::string last = ranges.back();
  ranges.pop_back();
  return absl::StrCat(absl::StrJoin(ranges, ", "), " and ", last);
}

int FlushStdout() {
  // An earlier call has failed if it is not this one, and no other has come between.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return kExitOk;
  LogError(absl::StrCat("cannot write to stdout: ", std::strerror(errno)));
  return kExitNoResources;
}

}  // namespace hlaunch
