// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/words/exit_codes.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace hlaunch
