// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/first_cause.h"

#include <gtest/gtest.h>

#include <csignal>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/round/cause/traceback.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

WorkerFailure Saying(Rank rank, const std::string& tail, int signal = 0) {
  WorkerFailure failure = Failure(rank, 1);
  failure.log_tail = tail;
  failure.signal = signal;
  return failure;
}

constexpr char kClosed[] = "RuntimeError: [pair.cc:553] Connection closed by peer [10.0.0.1]:33";

TEST(KindOf, KnowsTheWordsOfThoseWhoOnlySuffer) {
  const struct {
    CauseKind kind;
    int signal;
    const char* tail;
  } table[] = {
      {CauseKind::kPeerGone, 0, kClosed},
      {CauseKind::kPeerGone, 0,
       "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely "
       "closed. Did the remote server shutdown or crash?"},
      {CauseKind::kPeerGone, 0,
       "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or "
       "there was a network error, NCCL version 2.21.5\nncclRemoteError: A call failed"},
      {CauseKind::kPeerGone, 0, "write: Broken pipe"},
      {CauseKind::kPeerGone, SIGPIPE, ""},
      {CauseKind::kTimedOut, 0,
       "RuntimeError: [unbound_buffer.cc:81] Timed out waiting 2000ms for recv operation to "
       "complete"},
      {CauseKind::kTimedOut, 0,
       "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//1"},
      {CauseKind::kTimedOut, SIGABRT,
       "terminate called after throwing an instance of 'c10::DistBackendError'\n"
       "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 1] Watchdog caught collective operation "
       "timeout: WorkNCCL(SeqNum=3)"},
      {CauseKind::kOriginal, 0, "ValueError: bad batch"},
      {CauseKind::kOriginal, SIGABRT, "double free or corruption"},
      {CauseKind::kOriginal, SIGSEGV, kClosed},
      {CauseKind::kOriginal, SIGKILL, kClosed},
      {CauseKind::kOriginal, 0, ""},
  };
  for (const auto& row : table) {
    EXPECT_EQ(KindOf(Saying(0, row.tail, row.signal)), row.kind) << row.tail;
  }
}

TEST(KindOf, TellsWhoStalledFromWhoStalledWaitingForIt) {
  WorkerFailure stalled = Saying(0, "", SIGKILL);
  stalled.kind = FailureKind::kStalled;
  EXPECT_EQ(KindOf(stalled), CauseKind::kOriginal);
  WorkerFailure waited = stalled;
  waited.kind = FailureKind::kStalledWaiting;
  EXPECT_EQ(KindOf(waited), CauseKind::kTimedOut);
  EXPECT_EQ(FirstCause({waited, stalled}).index, 1u);
}

TEST(KindOf, OpenMpisAbortForALostRankIsAConsequence) {
  WorkerFailure aborted = Saying(2, "");
  EXPECT_EQ(KindOf(aborted), CauseKind::kOriginal);
  aborted.kind = FailureKind::kMpiPeerLost;
  EXPECT_EQ(KindOf(aborted), CauseKind::kPeerGone);
  EXPECT_EQ(FirstCause({aborted, Saying(1, "", SIGKILL)}).index, 1u);
}

// Whoever rewords a sentence changes no judgement.
TEST(KindOf, DoesNotReadTheEvidence) {
  WorkerFailure failure = Saying(0, "", SIGKILL);
  for (const char* evidence : {"stalled: while it waits for other workers in barrier",
                               "as Open MPI does where it has lost another rank",
                               "before the round: Connection refused, Timed out waiting"}) {
    failure.evidence = evidence;
    EXPECT_EQ(KindOf(failure), CauseKind::kOriginal) << evidence;
  }
}

TEST(KindOf, LooksAtTheExceptionAndNotAtWarningsBeforeIt) {
  const std::string warned = "[W socket.cpp:464] Connection reset by peer\n";
  EXPECT_EQ(KindOf(Saying(0, warned + "Traceback (most recent call last):\n  File \"t.py\"\n"
                                      "ValueError: bad batch\n")),
            CauseKind::kOriginal);
  WorkerFailure failure = Saying(0, warned);
  failure.message = "KeyError: 'x'";
  EXPECT_EQ(KindOf(failure), CauseKind::kOriginal);
}

TEST(FirstCause, IsTheFirstThatFailedByItself) {
  const WorkerFailure gone = Saying(1, kClosed), own = Failure(2, 85), later = Failure(3, 1);
  const WorkerFailure waited = Saying(4, "RuntimeError: Socket Timeout");
  const WorkerFailure refused = Saying(5, "OSError: [Errno 111] Connection refused");
  const struct {
    std::vector<WorkerFailure> failures;
    size_t index;
    CauseKind kind;
    std::string reason;
  } table[] = {
      {{own}, 0, CauseKind::kOriginal, ""},
      {{own, gone}, 0, CauseKind::kOriginal, "rank 2 on node1 was heard of first"},
      {{gone, gone, own, later},
       2,
       CauseKind::kOriginal,
       "rank 2 on node1 failed by itself; 2 failures heard before: rank 1 on node0 lost a "
       "connection"},
      {{waited, own},
       1,
       CauseKind::kOriginal,
       "rank 2 on node1 failed by itself; 1 failure heard before: rank 4 on node2 waited in vain"},
      {{gone, waited},
       1,
       CauseKind::kTimedOut,
       "rank 4 on node2 waited in vain; 1 failure heard before: rank 1 on node0 lost a connection"},
      {{gone, waited, refused},
       2,
       CauseKind::kNoConnect,
       "rank 5 on node2 could not connect; 2 failures heard before: rank 1 on node0 lost a "
       "connection"},
      {{gone, gone},
       0,
       CauseKind::kPeerGone,
       "rank 1 on node0 lost a connection, and no failure that explains it was heard of"},
  };
  for (const auto& row : table) {
    const Cause cause = FirstCause(row.failures);
    EXPECT_EQ(cause.index, row.index) << row.reason;
    EXPECT_EQ(cause.kind, row.kind) << row.reason;
    EXPECT_EQ(cause.reason, row.reason);
  }
}

TEST(FirstCause, FollowsWhomTheFailuresName) {
  const WorkerFailure gone = Saying(0, kClosed);
  const WorkerFailure blames_two =
      Saying(1, "hlaunch.RankLost: rank 2 on node1 went away during barrier #3");
  const WorkerFailure blames_three =
      Saying(2, "hlaunch.RankLost: rank 3 on node1 left the group before barrier #3");
  const Cause cause = FirstCause({gone, blames_two, blames_three});
  EXPECT_EQ(cause.index, 2u);
  ASSERT_TRUE(cause.accusation);
  EXPECT_EQ(cause.accusation->ranks, std::vector<Rank>({3}));
  EXPECT_EQ(cause.accusation->host, "node1");
  EXPECT_EQ(FirstCause({gone, blames_two}).index, 1u);
  EXPECT_FALSE(FirstCause({gone}).accusation);
  // Two failures blame each other: the first one counts.
  const WorkerFailure one = Saying(1, "rank 2 on node1 went away"),
                      two = Saying(2, "rank 1 on node0 went away");
  EXPECT_EQ(FirstCause({one, two}).index, 0u);
  const WorkerFailure own = Saying(3, "ValueError: bad");
  EXPECT_EQ(FirstCause({blames_two, own}).index, 1u);
  EXPECT_FALSE(FirstCause({blames_two, own}).accusation);
}

TEST(ExceptionOf, OfAGroupOfExceptionsIsTheGroupsAndTheRestFollows) {
  WorkerFailure failure;
  failure.exit_code = 1;
  failure.log_tail =
      "  + Exception Group Traceback (most recent call last):\n"
      "  |   File \"t.py\", line 1, in <module>\n"
      "  |     raise ExceptionGroup(\"shards\", errors)\n"
      "  | ExceptionGroup: shards (2 sub-exceptions)\n"
      "  +-+---------------- 1 ----------------\n"
      "    | ValueError: bad shard 1\n"
      "    +---------------- 2 ----------------\n"
      "    | OSError: bad shard 2\n"
      "    +------------------------------------\n";
  failure.traceback = TracebackIn(failure.log_tail);
  EXPECT_EQ(ExceptionOf(failure), "ExceptionGroup: shards (2 sub-exceptions)");
  EXPECT_EQ(MoreOfException(failure).at(1), "| ValueError: bad shard 1");
}

TEST(TracebackIn, KeepsTheFramesOfAMessageThatIsFarTooLong) {
  WorkerFailure failure;
  failure.exit_code = 1;
  failure.traceback = TracebackIn(
      "Traceback (most recent call last):\n  File \"t.py\", line 1\n"
      "ValueError: bad batch: " +
      std::string(5000, '7'));
  EXPECT_TRUE(absl::StrContains(failure.traceback, "t.py"));
  EXPECT_TRUE(absl::StartsWith(ExceptionOf(failure), "ValueError: bad batch: 777"));
}

TEST(HasGivenUp, IsWhoSaysThatItWaitedOrLostAnother) {
  const std::string traceback = "Traceback (most recent call last):\n  File \"t.py\", line 1\n";
  EXPECT_TRUE(HasGivenUp(traceback + "RuntimeError: Timed out waiting 3000ms for send\n"));
  EXPECT_TRUE(HasGivenUp(traceback + "ConnectionResetError: Connection reset by peer\n\nbye\n"));
  EXPECT_TRUE(
      HasGivenUp("terminate called after throwing an instance of 'c10::DistBackendError'\n"
                 "  what():  NCCL operations have failed or timed out.\n"));
  EXPECT_FALSE(HasGivenUp(traceback + "ValueError: bad batch\n"));
  EXPECT_FALSE(HasGivenUp("epoch 3: loss 0.2\n"));
  EXPECT_FALSE(HasGivenUp(""));
}

TEST(CauseWindow, IsForConsequencesOnly) {
  EXPECT_EQ(CauseWindow(CauseKind::kOriginal), Duration::zero());
  EXPECT_GT(CauseWindow(CauseKind::kPeerGone), Duration::zero());
  EXPECT_GT(CauseWindow(CauseKind::kTimedOut), CauseWindow(CauseKind::kPeerGone));
}

TEST(ExceptionOf, PrefersTheErrorFile) {
  WorkerFailure failure = Saying(0, "KeyError: 'y'");
  failure.message = "ValueError: bad\nbatch";
  EXPECT_EQ(ExceptionOf(failure), "ValueError: bad");
}

constexpr char kFromLoader[] =
    "Traceback (most recent call last):\n  File \"/site-packages/torch/_utils.py\", line 794\n"
    "ValueError: Caught ValueError in DataLoader worker process 0.\n"
    "Original Traceback (most recent call last):\n  File \"t.py\", line 5, in __getitem__\n"
    "    raise ValueError(\"bad sample\")\nValueError: bad sample\n\n";

TEST(ExceptionOf, IsTheOriginalOneOfADataLoader) {
  EXPECT_EQ(ExceptionOf(Saying(0, kFromLoader)), "ValueError: bad sample");
  WorkerFailure failure = Saying(0, "");
  failure.message = std::string(kFromLoader).substr(std::string(kFromLoader).find("ValueError"));
  EXPECT_EQ(ExceptionOf(failure), "ValueError: bad sample");
  EXPECT_TRUE(MoreOfException(failure).empty());
}

TEST(ExceptionOf, LeavesOutWhatGlooAndC10dSayToAnybody) {
  for (const char* end : {"", " \xF0\x9F\x8F\x96\xEF\xB8\x8F"}) {
    EXPECT_EQ(
        ExceptionOf(Saying(
            0, absl::StrCat(
                   "RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/"
                   "pair.cc:537] Read error [127.0.0.1]:28343: Connection reset by peer. This is "
                   "typically caused by a remote worker hanging or bugs in the application. Check "
                   "the logs of the remote worker before reporting an error. GLHF!",
                   end, "\n"))),
        "RuntimeError: [pair.cc:537] Read error [127.0.0.1]:28343: Connection reset by peer.");
  }
  const std::string print =
      "TensorShape=[4], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), "
      "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false "
      "(default), memory_format=(nullopt)))";
  EXPECT_EQ(
      ExceptionOf(Saying(0,
                         "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 "
                         "is running collective: CollectiveFingerPrint(SequenceNumber=2, "
                         "OpType=ALLREDUCE, " +
                             print +
                             ", but Rank 1 is running collective: CollectiveFingerPrint("
                             "SequenceNumber=2, OpType=BROADCAST, " +
                             print + ".\n")),
      "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 runs "
      "(SequenceNumber=2, "
      "OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float), but Rank 1 runs (SequenceNumber=2, "
      "OpType=BROADCAST, TensorShape=[4], TensorDtypes=Float).");
}

TEST(MoreOfException, IsTheRestOfTheMessage) {
  const std::string tail =
      "Traceback (most recent call last):\n  File \"t.py\", line 1\n"
      "RuntimeError: Error(s) in loading state_dict for Linear:\n"
      "\tsize mismatch for weight: a\n\tsize mismatch for bias: b\n[W] bye\n";
  WorkerFailure failure = Saying(0, tail);
  failure.traceback = TracebackIn(tail);
  const std::vector<std::string> expected = {"size mismatch for weight: a",
                                             "size mismatch for bias: b"};
  EXPECT_EQ(MoreOfException(failure), expected);
  EXPECT_EQ(ExceptionOf(failure), "RuntimeError: Error(s) in loading state_dict for Linear:");
  failure.message =
      "RuntimeError: Error(s)\n\tsize mismatch for weight: a\n\tsize mismatch for "
      "bias: b";
  EXPECT_EQ(MoreOfException(failure), expected);
  EXPECT_TRUE(MoreOfException(Saying(0, "")).empty());
}

TEST(ExceptionOf, FindsItInStderr) {
  const struct {
    const char* tail;
    const char* exception;
  } table[] = {
      {"", ""},
      {"step 1\nstep 2\n", ""},
      {"Traceback (most recent call last):\n  File \"t.py\", line 1, in <module>\n    f()\n"
       "ValueError: bad batch\n",
       "ValueError: bad batch"},
      // The format of torch 2.3 and newer.
      {"[rank3]: Traceback (most recent call last):\n[rank3]:   File \"t.py\", line 1\n"
       "[rank3]:     f()\n[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n",
       "torch.OutOfMemoryError: CUDA out of memory."},
      // A name that only the traceback tells from other lines.
      {"Traceback (most recent call last):\n  File \"t.py\", line 1\nStopTraining\nbye\n",
       "StopTraining"},
      // The last traceback of a chain.
      {"Traceback (most recent call last):\n  File \"t.py\"\nKeyError: 1\n\nDuring handling of the "
       "above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
       "  File \"t.py\"\nOSError: no\n",
       "OSError: no"},
      // An ignored exception ends nothing.
      {"Traceback (most recent call last):\n  File \"t.py\"\nValueError: bad\n"
       "Exception ignored in: <function f>\nTraceback (most recent call last):\n  File \"t.py\"\n"
       "AttributeError: 'NoneType' object\n",
       "ValueError: bad"},
      // No traceback, or one without its head.
      {"  File \"t.py\", line 3\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n",
       "SyntaxError: invalid syntax"},
      {"    raise ValueError(1)\nValueError: 1\n[W] Exception raised from f (most recent first):\n"
       "frame #0: c10::Error\n",
       "ValueError: 1"},
      {"terminate called after throwing an instance of 'std::runtime_error'\n  what():  boom\n",
       "std::runtime_error: boom"},
      {"terminate called after throwing an instance of 'int'\n", "int"},
      {"Traceback (most recent call last):\n  File \"t.py\"\nE: \x1b[31mred\x07\n", "E: ?[31mred?"},
  };
  for (const auto& row : table) EXPECT_EQ(ExceptionOf(Saying(0, row.tail)), row.exception);
  const std::string exception = ExceptionOf(Saying(0, "ValueError: " + std::string(5000, 'x')));
  EXPECT_EQ(exception.size(), 300u);
}

TEST(ExceptionOf, PrefersTheTracebackToWhatCameAfterIt) {
  WorkerFailure failure = Saying(0, "frame #1: c10::Error\nframe #2: main\n");
  failure.traceback = "Traceback (most recent call last):\n  File \"t\"\nKeyError: 1";
  EXPECT_EQ(ExceptionOf(failure), "KeyError: 1");
}

}  // namespace
}  // namespace hlaunch
