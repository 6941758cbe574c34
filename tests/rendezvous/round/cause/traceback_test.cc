// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/traceback.h"

#include <gtest/gtest.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "rendezvous/round/cause/first_cause.h"

namespace hlaunch {
namespace {

TEST(LastLines, AreWhole) {
  EXPECT_EQ(LastLines("ab\ncd\n", 100), "ab\ncd");
  EXPECT_EQ(LastLines("ab\ncd\nef", 5), "cd\nef");
  EXPECT_EQ(LastLines("ab\ncd\nef", 4), "ef");
  EXPECT_EQ(LastLines("abcdef", 3), "");
}

TEST(TracebackIn, IsTheLastOneWhole) {
  EXPECT_EQ(TracebackIn("step\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"t\"\n"
                        "[rank0]: KeyError: 1\n[W] bye\n"),
            "Traceback (most recent call last):\n  File \"t\"\nKeyError: 1");
  EXPECT_EQ(TracebackIn("    f()\n  File \"t\"\nKeyError: 1\n"),
            "    f()\n  File \"t\"\nKeyError: 1");
  EXPECT_EQ(TracebackIn("step\n"), "");
}

// What torch 2.11 writes after a kernel's assertion failed, with fewer frames.
constexpr char kMessage[] =
    "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/ for more information.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n\n";
constexpr char kStack[] =
    "Exception raised from query at /pytorch/c10/cuda/CUDAEvent.h:111 (most recent call first):\n"
    "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x9d (0x7fce in libc10.so)\n"
    "frame #1: <unknown function> + 0xc114 (0x7fce in libc10_cuda.so)\n\n";
constexpr char kCuda[] = "CUDA error: device-side assert triggered\n";

std::string Traceback() {
  return absl::StrCat(
      "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:111: operator(): block: [0,0,0], thread: "
      "[1,0,0] Assertion `index < sizes[i] && \"index out of bounds\"` failed.\n"
      "[rank0]: Traceback (most recent call last):\n"
      "[rank0]:   File \"t.py\", line 15, in step\n[rank0]:     print(x.sum().item())\n"
      "[rank0]: torch.AcceleratorError: ",
      kCuda, absl::StrReplaceAll(kMessage, {{"\n", "\n[rank0]: "}}), "\n");
}

std::string Abort(const std::string& what) {
  return absl::StrCat("terminate called after throwing an instance of 'c10::DistBackendError'\n",
                      "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 0] Process group watchdog ",
                      "thread terminated with exception: ", what, kMessage, kStack, kStack);
}

TEST(TracebackBeforeAbort, IsThatOfTheErrorWhichCudaToldCppAsWell) {
  EXPECT_EQ(TracebackBeforeAbort(Traceback() + Abort(kCuda)),
            "Traceback (most recent call last):\n  File \"t.py\", line 15, in step\n"
            "    print(x.sum().item())\n"
            "torch.AcceleratorError: CUDA error: device-side assert triggered");
  EXPECT_EQ(TracebackBeforeAbort(Traceback() + "terminate called without an active exception\n"),
            TracebackIn(Traceback()));
}

TEST(TracebackBeforeAbort, IsNotThatOfAnErrorWhichTheProgramSurvived) {
  EXPECT_EQ(TracebackBeforeAbort(Traceback() + Abort("[Rank 0] Watchdog caught a timeout\n")), "");
  EXPECT_EQ(TracebackBeforeAbort(Traceback() + "terminate called recursively\n"), "");
  EXPECT_EQ(TracebackBeforeAbort(Abort(kCuda)), "");
  EXPECT_EQ(TracebackBeforeAbort(Traceback()), "");
  EXPECT_EQ(TracebackBeforeAbort(
                "Traceback (most recent call last):\n  File \"t\"\nStopTraining\n" + Abort(kCuda)),
            "");
}

// The stacks of a watchdog's exception are longer than the part of the log that is reported.
TEST(WithoutCppStacks, LeavesWhatTheWatchdogSays) {
  WorkerFailure failure;
  failure.signal = SIGABRT;
  const std::string timeout =
      "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, "
      "OpType=ALLREDUCE, Timeout(ms)=5000) ran for 5001 milliseconds before timing out.";
  std::string text = Abort(timeout + "\n");
  for (int i = 0; i < 100; ++i) text += kStack;
  failure.log_tail = LastLines(WithoutCppStacks(text), 4096);
  EXPECT_EQ(ExceptionOf(failure), absl::StrCat("c10::DistBackendError: ", timeout));
  EXPECT_EQ(KindOf(failure), CauseKind::kTimedOut);
  EXPECT_EQ(WithoutCppStacks("a\n\nb\n"), "a\nb");
}

TEST(TracebackIn, LeavesOutWhatCythonIgnoredThoughItsTracebackStandsFirst) {
  const std::string ignored =
      "Traceback (most recent call last):\n  File \"driver.pyx\", line 247, in moduleUnload\n"
      "CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS\n";
  const std::string mine = TracebackIn(Traceback());
  EXPECT_EQ(
      TracebackIn(absl::StrCat(Traceback(), ignored,
                               "Exception ignored in: 'cupy.cuda.function.Module'\n", ignored)),
      mine);
  // The error that Python ignored afterwards was another one.
  EXPECT_EQ(TracebackIn(absl::StrCat(Traceback(), "Exception ignored in: 'f'\n", ignored)), mine);
}

TEST(KernelAssertionIn, IsTheLastOneInShort) {
  const std::string first =
      "/a/First.cu:1: f: block: [0,0,0], thread: [0,0,0] Assertion `false` failed.\n";
  EXPECT_EQ(KernelAssertionIn(first + Traceback()),
            "a kernel's assertion failed: index < sizes[i] && \"index out of bounds\" "
            "(IndexKernel.cu:111)");
  EXPECT_EQ(KernelAssertionIn(first + "t: t.c:7: main: Assertion `false' failed.\n"),
            "a kernel's assertion failed: false (First.cu:1)");
  const std::string much(5000, 'x');
  const std::string of_much = KernelAssertionIn(
      absl::StrCat(much, ".cu:1: f: block: [], thread: [] Assertion `", much, "` failed.\n"));
  EXPECT_EQ(of_much.size(), kKernelAssertion.size() + 603);
  for (const char* text :
       {"", "], thread: [", "] Assertion `", "], thread: [] Assertion `",
        "t: t.c:7: main: Assertion `false' failed.", "], thread: [: ] Assertion `a` failed."}) {
    EXPECT_EQ(KernelAssertionIn(text), "") << text;
  }
}

}  // namespace
}  // namespace hlaunch
