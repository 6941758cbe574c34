// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// Shortened output of py-spy 0.4, gdb 13 and Python 3.11's faulthandler.

#include "agent/watch/stall/stack_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kPySpy[] = R"text(Process 12900: /usr/bin/python3 train.py
Python v3.11.2 (/usr/bin/python3.11)

Thread 12902 (idle): "Thread-1 (other)"
    Thread.run (threading.py:975)
Thread 12900 (idle): "MainThread"
    clock_nanosleep (libc.so.6)
    0x7ffaff9cdf7a (libffi.so.8.1.2)
    work (train.py:3)
    <module> (train.py:6)
Thread 12903 (idle): "Thread-2"
    wait (threading.py:320)
)text";

constexpr char kFaulthandler[] = R"(Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 975 in run

Current thread 0x00007f2 (most recent call first):
  File "/home/me/train.py", line 3 in work
  File "/home/me/train.py", line 6 in <module>
)";

constexpr char kGdb[] = R"text([New LWP 12902]
Thread 2 (Thread 0x7ff (LWP 12902) "python3"):
#0  0x00007ff in clone3 () at ../sysdeps/clone3.S:81

Thread 1 (Thread 0x7ff (LWP 12900) "python3"):
#0  0x00007ff in usleep (useconds=<optimized out>) at ../sysdeps/posix/usleep.c:31
#1  0x00007ff in ?? () from /lib/libffi.so.8
#2  main (argc=1) at train.c:7
[Inferior 1 (process 12900) detached]
)text";

TEST(SummarizeStacks, ReadsPySpy) {
  const StackSummary summary = SummarizeStacks(kPySpy);
  EXPECT_THAT(summary.frames, ElementsAre("clock_nanosleep (libc.so.6)", "work (train.py:3)",
                                          "<module> (train.py:6)"));
  EXPECT_EQ(summary.traceback,
            "  File \"train.py\", line 6, in <module>\n  File \"train.py\", line 3, in work");
  EXPECT_EQ(summary.waits_in, "");
}

TEST(SummarizeStacks, ReadsFaulthandler) {
  const StackSummary summary = SummarizeStacks(kFaulthandler);
  EXPECT_THAT(summary.frames,
              ElementsAre("work (/home/me/train.py:3)", "<module> (/home/me/train.py:6)"));
  EXPECT_EQ(summary.traceback,
            "  File \"/home/me/train.py\", line 6, in <module>\n"
            "  File \"/home/me/train.py\", line 3, in work");
}

TEST(SummarizeStacks, ReadsGdb) {
  const StackSummary summary = SummarizeStacks(kGdb);
  EXPECT_THAT(summary.frames,
              ElementsAre("usleep (useconds=<optimized out>) at ../sysdeps/posix/usleep.c:31",
                          "main (argc=1) at train.c:7"));
  EXPECT_EQ(summary.traceback, "");
}

TEST(SummarizeStacks, KnowsWhoWaitsForOthers) {
  for (const char* frame : {
           "    barrier (torch/distributed/distributed_c10d.py:4818)",
           "    gloo::transport::tcp::UnboundBuffer::waitRecv(int*) (libtorch_cpu.so)",
           "  File \"/venv/site-packages/hlaunch/process_group.py\", line 3 in wait",
           "#0  0x00007ff in hlcomm_run () from libhlcomm.so.1",
           "#4  0x00007ff in c10d::Reducer::finalize_backward() () from libtorch_cpu.so",
           "#2  MPI_Barrier () from libmpi.so",
           "#1  MPIDI_progress_test () from libmpi.so",
           "#0  opal_progress () from libopen-pal.so.40",
           "  File \"/venv/site-packages/torch/distributed/rpc/api.py\", line 842 in rpc_sync",
           "    wait (torch/futures/__init__.py:91)",
       }) {
    const std::string text = std::string("Thread 1 (idle): \"MainThread\"\n    poll (libc.so)\n") +
                             frame + "\n    <module> (train.py:6)\n";
    EXPECT_NE(SummarizeStacks(text).waits_in, "") << frame;
  }
  for (const char* frame : {"    work (train.py:3)", "    next (my_mpi4py_loader.py:3)",
                            "    vincluded (train.py:3)"}) {
    const std::string text = std::string("Thread 1 (idle): \"MainThread\"\n") + frame + "\n";
    EXPECT_EQ(SummarizeStacks(text).waits_in, "") << frame;
  }
}

TEST(SummarizeStacks, AnotherThreadThatWaitsSaysNothingOfTheMainOne) {
  EXPECT_EQ(SummarizeStacks("Thread 9 (idle): \"watchdog\"\n    gloo::run (libtorch.so)\n"
                            "Thread 1 (active): \"MainThread\"\n    work (train.py:3)\n")
                .waits_in,
            "");
}

TEST(SummarizeStacks, FindsNothingWhereNothingIs) {
  EXPECT_THAT(SummarizeStacks("").frames, IsEmpty());
  EXPECT_THAT(
      SummarizeStacks("Error: Permission Denied\n\nCaused by:\n    0: x (os error 13)\n").traceback,
      IsEmpty());
}

TEST(SummarizeStacks, TakesAnyBytes) {
  std::minstd_rand random(1);
  for (const std::string seed : {kPySpy, kFaulthandler, kGdb}) {
    for (int i = 0; i < 3000; ++i) {
      std::string text = seed.substr(random() % seed.size());
      for (unsigned n = random() % 8; n > 0; --n) {
        text[random() % text.size()] = static_cast<char>(random());
      }
      for (const std::string& frame : SummarizeStacks(text).frames) {
        EXPECT_EQ(frame.find('\n'), std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace hlaunch
