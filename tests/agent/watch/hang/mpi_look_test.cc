// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/mpi_look.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

constexpr char kInBarrier[] = R"(by gdb:
Thread 2 (Thread 0x7f95345ff6c0 (LWP 2024) "async"):
#0  0x00007f9537526f36 in epoll_wait (epfd=8) at ../sysdeps/unix/sysv/linux/epoll_wait.c:30
#1  0x00007f9539e27959 in ucs_event_set_wait () from target:/lib/x86_64-linux-gnu/libucs.so.0

Thread 1 (Thread 0x7f9539def780 (LWP 2020) "mp"):
#0  0x00007f95371d9439 in ?? () from target:/lib/x86_64-linux-gnu/libuct.so.0
#1  0x00007f953735bef2 in ucp_worker_progress () from target:/lib/x86_64-linux-gnu/libucp.so.0
#10 0x00007f95376b31c6 in PMPI_Barrier () from target:/lib/x86_64-linux-gnu/libmpich.so.12
#11 0x0000561bd23381e3 in step (number=5) at /home/me/heat.c:40
#12 0x0000561bd2338200 in main (c=1, v=0x7ffed69f45e8) at /home/me/heat.c:7
[Inferior 1 (process 2020) detached]
)";

TEST(ReadMpiStack, SaysWhichCallItIsAndWhoCalledIt) {
  const MpiStack stack = ReadMpiStack(kInBarrier);
  EXPECT_TRUE(stack.known);
  EXPECT_EQ(stack.function, "PMPI_Barrier");
  EXPECT_EQ(stack.place, "step (heat.c:40)");
  EXPECT_EQ(stack.returns_to, 0x561bd23381e3u);
}

TEST(ReadMpiStack, TakesTheOutermostFunctionSinceFortranAndToolsCallTheInnerOne) {
  const MpiStack stack = ReadMpiStack(R"(
Thread 1 (Thread 0x7f (LWP 1) "f"):
#0  0x0000000000000001 in sched_yield () at ../sysdeps/unix/syscall-template.S:120
#1  0x0000000000000002 in PMPI_Bcast () from /usr/lib/libmpi.so.40
#2  0x0000000000000003 in pmpi_bcast_ () from /usr/lib/libmpi_mpifh.so.40
#3  0x0000000000000abc in MAIN__ ()
#4  0x0000000000000005 in main ()
)");
  EXPECT_EQ(stack.function, "pmpi_bcast_");
  EXPECT_EQ(stack.place, "MAIN__");
  EXPECT_EQ(stack.returns_to, 0xabcu);
}

TEST(ReadMpiStack, KnowsNoPlaceInPythonFromAToolThatDoesNotKnowPython) {
  const MpiStack stack = ReadMpiStack(R"(
Thread 1 (Thread 0x7f (LWP 1) "python3"):
#0  0x0000000000000001 in PMPI_Barrier () from /lib/libmpich.so.12
#1  0x0000000000000002 in _call_function_pointer (pProc=0x7f) at callproc.c:930
#2  0x0000000000000003 in _PyEval_EvalFrameDefault (tstate=0x1) at ceval.c:4769
#3  0x0000000000000004 in main ()
)");
  EXPECT_EQ(stack.function, "PMPI_Barrier");
  EXPECT_EQ(stack.place, "");
  EXPECT_EQ(stack.returns_to, 2u);
}

TEST(ReadMpiStack, NamesTheUsersOwnFunctionOutsideOfMpi) {
  const MpiStack stack = ReadMpiStack(R"(
Thread 1 (Thread 0x7f44c8fea780 (LWP 2021) "mp"):
#0  0x00007f44c66ed545 in __GI___clock_nanosleep (clock_id=0) at ../sysdeps/clock_nanosleep.c:48
#1  0x00007f44c66f1e53 in nanosleep () from /lib/x86_64-linux-gnu/libc.so.6
#2  0x000055c57536a187 in load_shard ()
#3  0x000055c57536a1d9 in main ()
)");
  EXPECT_TRUE(stack.known);
  EXPECT_EQ(stack.function, "");
  EXPECT_EQ(stack.place, "load_shard");
  EXPECT_EQ(stack.returns_to, 0u);
}

TEST(ReadMpiStack, NamesThePythonLine) {
  const MpiStack stack = ReadMpiStack(R"(by py-spy:
Process 7: python3 train.py
Thread 7 (active): "MainThread"
    sched_yield (libc.so.6)
    MPI_Barrier (libmpi.so.12)
    __pyx_pw_6mpi4py_3MPI_4Comm_Barrier (mpi4py/MPI.abi3.so)
    step (/home/me/train.py:12)
    <module> (/home/me/train.py:20)
)");
  EXPECT_EQ(stack.function, "MPI_Barrier");
  EXPECT_EQ(stack.place, "step (train.py:12)");
  EXPECT_EQ(stack.returns_to, 0u);
}

TEST(ReadMpiStack, KnowsNothingWithoutAStack) {
  EXPECT_FALSE(ReadMpiStack("ptrace: Operation not permitted.").known);
  EXPECT_FALSE(ReadMpiStack("").known);
}

}  // namespace
}  // namespace hlaunch
