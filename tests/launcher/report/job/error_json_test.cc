// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/error_json.h"

#include <gtest/gtest.h>

#include "agent/workers/worker/error_file.h"

namespace hlaunch {
namespace {

TEST(ErrorJson, IsReadAsTorchsIs) {
  Outcome outcome;
  outcome.reason = "rank 1 exited with code 1";
  outcome.failures.resize(1);
  outcome.failures[0].message = "ValueError: no \xff";
  outcome.failures[0].traceback = "Traceback\n  x";
  outcome.failures[0].wall_ms = 7500;
  EXPECT_EQ(ErrorJson(outcome),
            "{\"message\":{\"message\":\"ValueError: no \xef\xbf\xbd\",\"extraInfo\":"
            "{\"py_callstack\":\"Traceback\\n  x\",\"timestamp\":\"7\"}}}");
  const ErrorFile read = ParseErrorFile(ErrorJson(outcome));
  EXPECT_EQ(read.traceback, "Traceback\n  x");
}

TEST(ErrorJson, HasTheReasonIfTheWorkerSaidNothing) {
  Outcome outcome;
  outcome.reason = "rank 1 exited with code 1";
  outcome.failures.resize(1);
  EXPECT_EQ(ParseErrorFile(ErrorJson(outcome)).message, "rank 1 exited with code 1");
}

}  // namespace
}  // namespace hlaunch
