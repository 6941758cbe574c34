// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/complaint.h"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace hlaunch {
namespace {

// Output of real programs, see tests/bench/report.
TEST(ComplaintIn, IsTheLineThatTellsWhy) {
  const struct {
    const char* tail;
    const char* complaint;
  } rows[] = {
      {"usage: train.py [-h] --data DATA\ntrain.py: error: the following arguments are required: "
       "--data",
       "train.py: error: the following arguments are required: --data"},
      {"sh: 1: no-such-command: not found", "sh: 1: no-such-command: not found"},
      {"/usr/bin/python3: No module named no_such_module",
       "/usr/bin/python3: No module named no_such_module"},
      {"thread 'main' panicked at 'index out of bounds', src/tokens.rs:7:5\nnote: run with "
       "`RUST_BACKTRACE=1` environment variable to display a backtrace",
       "thread 'main' panicked at 'index out of bounds', src/tokens.rs:7:5"},
      {"loading\nstep 1\nstep 2", ""},
      {"", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(ComplaintIn(row.tail), row.complaint);
}

TEST(ComplaintIn, NamesPythonHome) {
  EXPECT_EQ(
      ComplaintIn(
          "  sys.executable = '/usr/bin/python3'\n  sys.prefix = '/opt/python9'\n"
          "  sys.exec_prefix = '/opt/python9'\nFatal Python error: init_fs_encoding: failed to "
          "get the Python codec of the filesystem encoding\nModuleNotFoundError: No "
          "module named 'encodings'\n"),
      "Python finds no standard library below '/opt/python9', where PYTHONHOME or its "
      "installation has it");
}

TEST(ComplaintIn, NamesTheCarriageReturn) {
  EXPECT_EQ(
      ComplaintIn("/usr/bin/env: \xe2\x80\x98python3\\r\xe2\x80\x99: No such file or "
                  "directory\n/usr/bin/env: use -[v]S to pass options in shebang lines"),
      "the script's first line ends in CR LF: /usr/bin/env: \xe2\x80\x98python3\\r\xe2\x80\x99: "
      "No such file or directory");
}

TEST(OwnWords, AreTheExceptionBeforeAnyComplaint) {
  WorkerFailure failure;
  failure.exit_code = 1;
  failure.log_tail =
      "x: error: bad\nTraceback (most recent call last):\n  File \"t.py\", line 1\n"
      "ValueError: bad batch";
  EXPECT_EQ(OwnWords(failure), "ValueError: bad batch");
  failure.log_tail = "x: error: bad";
  EXPECT_EQ(OwnWords(failure), "x: error: bad");
  failure.signal = SIGKILL;
  EXPECT_EQ(OwnWords(failure), "") << "it was survived";
}

}  // namespace
}  // namespace hlaunch
