// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/exit_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "proto/contract/exit_code.h"

namespace hlaunch {
namespace {

TEST(ExitCodeOf, IsThatOfAShellBeforeTheStart) {
  const auto code = [](const absl::Status& status) {
    return ExitCodeOf(FailedStep::kPrepare, status);
  };
  EXPECT_EQ(code(absl::OkStatus()), kExitOk);
  EXPECT_EQ(code(absl::InvalidArgumentError("")), kExitUsage);
  EXPECT_EQ(code(absl::NotFoundError("")), kExitNotFound);
  EXPECT_EQ(code(absl::PermissionDeniedError("")), kExitNotExecutable);
  EXPECT_EQ(code(absl::FailedPreconditionError("")), kExitNotExecutable);
  EXPECT_EQ(code(absl::ResourceExhaustedError("")), kExitNoResources);
  EXPECT_EQ(code(absl::UnavailableError("")), kExitInternal);
}

TEST(ExitCodeOf, SaysWhyTheNodesCannotMeet) {
  const auto code = [](const absl::Status& status) {
    return ExitCodeOf(FailedStep::kMeet, status);
  };
  EXPECT_EQ(code(absl::AlreadyExistsError("")), kExitPortInUse);
  EXPECT_EQ(code(absl::ResourceExhaustedError("")), kExitNoResources);
  EXPECT_EQ(code(absl::InternalError("")), kExitInternal);
  EXPECT_EQ(code(absl::UnauthenticatedError("")), kExitUsage);
  EXPECT_EQ(code(absl::InvalidArgumentError("")), kExitBadEndpoint);
  EXPECT_EQ(code(absl::PermissionDeniedError("")), kExitBadEndpoint);
  EXPECT_EQ(code(absl::UnavailableError("")), kExitBadEndpoint);
}

TEST(ExitCodeOf, TellsARefusalFromNoAnswer) {
  const auto code = [](const absl::Status& status) { return ExitCodeOf(FailedStep::kAsk, status); };
  EXPECT_EQ(code(absl::NotFoundError("")), kExitRefused);
  EXPECT_EQ(code(absl::PermissionDeniedError("")), kExitRefused);
  EXPECT_EQ(code(absl::UnavailableError("")), kExitBadEndpoint);
  EXPECT_EQ(code(absl::DeadlineExceededError("")), kExitBadEndpoint);
  EXPECT_EQ(code(absl::ResourceExhaustedError("")), kExitBadEndpoint);
}

// systemd prints its own name for such codes ("203/EXEC"). They count from 200 upwards: 244 is the
// last in release 252, and later releases have 245 and 246. Many programs use 255. srun exits
// with 1 if its tasks exit with 253, and no program gives 254 a meaning.
TEST(OwnExitCodes, AreNoSignalsAndNoneOfSystemds) {
  for (const int code : kOwnExitCodes) {
    const bool free = code > 246 && code != 253 && code != 255;
    EXPECT_TRUE((code > kExitSignalBase + 64 && code < 200) || free) << code;
  }
}

TEST(OwnExitCodes, AreDifferentAndAscend) {
  EXPECT_EQ(std::adjacent_find(std::begin(kOwnExitCodes), std::end(kOwnExitCodes),
                               std::greater_equal<>()),
            std::end(kOwnExitCodes));
}

TEST(OwnExitCodes, AreSaidAsRanges) { EXPECT_EQ(OwnExitCodes(), "193 to 199, 247 to 252 and 254"); }

}  // namespace
}  // namespace hlaunch
