// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi/pmi_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/mpi/pmi/process_mapping.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr char kInit[] = "cmd=init pmi_version=1 pmi_subversion=1\n";
constexpr char kWelcome[] = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";

PmiPlace OneNode(int nproc) { return {"hl-1-r1", 0, nproc, nproc, 0, 1, true}; }

// The answer of `node` to `line` from local rank 0, without the end of the line.
std::string Answer(PmiNode& node, const std::string& line) {
  const PmiStep step = node.Take(0, absl::StrCat(line, "\n"));
  if (step.answers.size() != 1 || step.answers[0].first != 0) return "not one answer";
  const std::string& text = step.answers[0].second;
  return text.substr(0, text.size() - 1);
}

TEST(PmiNode, SaysTheNumberOfTheRanksProgram) {
  PmiPlace place = OneNode(2);
  place.programs = {0, 1};
  PmiNode node(place);
  for (int rank = 0; rank < 2; ++rank) {
    const PmiStep step = node.Take(rank, absl::StrCat(kInit, "cmd=get_appnum\n"));
    EXPECT_THAT(step.answers,
                testing::Contains(Pair(rank, absl::StrCat("cmd=appnum appnum=", rank, "\n"))));
  }
}

struct Exchange {
  std::string request;
  std::string answer;
};

// The dialogue of MPICH 4.0.2 and 5.0.2, word by word, and other messages of their clients.
const Exchange kDialogue[] = {
    {"cmd=init pmi_version=1 pmi_subversion=1",
     "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"},
    {"cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024"},
    {"cmd=get_appnum", "cmd=appnum appnum=0"},
    {"cmd=get_my_kvsname", "cmd=my_kvsname kvsname=hl-1-r1"},
    {"cmd=get kvsname=hl-1-r1 key=PMI_process_mapping",
     "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))"},
    {"cmd=get kvsname=hl-1-r1 key=PMI_hwloc_xmlfile",
     "cmd=get_result rc=-1 msg=key_PMI_hwloc_xmlfile_not_found value=unknown"},
    {"cmd=put kvsname=hl-1-r1 key=-bcast-1-0 value=207F[2]6375[26]E0 mpi#1$ key=x",
     "cmd=put_result rc=0 msg=success"},
    {"cmd=get kvsname=hl-1-r1 key=-bcast-1-0",
     "cmd=get_result rc=0 msg=success value=207F[2]6375[26]E0 mpi#1$ key=x"},
    {"cmd=put kvsname=other key=k value=v", "cmd=put_result rc=-1 msg=kvs_not_found"},
    {"cmd=get kvsname=other key=k", "cmd=get_result rc=-1 msg=kvs_not_found value=unknown"},
    {"cmd=put kvsname=hl-1-r1 key= value=v", "cmd=put_result rc=-1 msg=key_or_value_too_long"},
    {"cmd=get_universe_size", "cmd=universe_size size=2"},
    {"cmd=lookup_name service=ocean", "cmd=lookup_result info=ok rc=1 msg=service_not_found"},
    {"cmd=publish_name service=ocean port=tag#0$", "cmd=publish_result info=ok rc=0 msg=success"},
    {"cmd=publish_name service=ocean port=tag#1$",
     "cmd=publish_result info=ok rc=1 msg=key_already_present"},
    {"cmd=lookup_name service=ocean", "cmd=lookup_result port=tag#0$ info=ok rc=0 msg=success"},
    {"cmd=unpublish_name service=ocean", "cmd=unpublish_result info=ok rc=0 msg=success"},
    {"mcmd=spawn\nnprocs=2\nexecname=/bin/x\ntotspawns=1\nspawnssofar=1\nargcnt=2\narg1=a b=c\n"
     "endcmd",
     "cmd=spawn_result rc=-1 msg=arg2_is_missing_in_a_spawn"},
    {"cmd=finalize", "cmd=finalize_ack"},
};

TEST(PmiNode, AnswersWordByWord) {
  PmiNode node(OneNode(2));
  for (const Exchange& exchange : kDialogue) {
    EXPECT_EQ(Answer(node, exchange.request), exchange.answer) << exchange.request;
  }
  EXPECT_TRUE(node.used());
}

TEST(PmiNode, TakesBytesInAnyPieces) {
  PmiNode node(OneNode(2));
  std::string said;
  for (const Exchange& exchange : kDialogue) {
    for (const char byte : absl::StrCat(exchange.request, "\n")) {
      for (const auto& answer : node.Take(0, std::string(1, byte)).answers) said += answer.second;
    }
  }
  std::string expected;
  for (const Exchange& exchange : kDialogue) absl::StrAppend(&expected, exchange.answer, "\n");
  EXPECT_EQ(said, expected);
}

constexpr char kFirstOfTwo[] =
    "mcmd=spawn\nnprocs=2\nexecname=solver\ntotspawns=2\nspawnssofar=1\nargcnt=2\narg1=a "
    "b=c\narg2=\n"
    "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=tag#0$x=1 $\n"
    "info_num=2\ninfo_key_0=wdir\ninfo_val_0=/tmp\ninfo_key_1=host\ninfo_val_1=a,b\nendcmd\n";
constexpr char kSecondOfTwo[] =
    "mcmd=spawn\nnprocs=1\nexecname=/bin/io\ntotspawns=2\nspawnssofar=2\nendcmd\n";

TEST(PmiNode, SpawnIsAskedForOnceAfterTheLastBlock) {
  PmiNode node(OneNode(1));
  node.Take(0, kInit);
  EXPECT_THAT(node.Take(0, kFirstOfTwo).spawns, IsEmpty());
  const PmiStep step = node.Take(0, absl::StrCat(kSecondOfTwo, "cmd=get_appnum\n"));
  EXPECT_THAT(step.answers, IsEmpty());
  ASSERT_THAT(step.spawns, SizeIs(1));
  const SpawnRequest& request = step.spawns[0].second;
  EXPECT_EQ(RanksOf(request), 3);
  ASSERT_THAT(request.programs, SizeIs(2));
  EXPECT_THAT(request.programs[0].argv, ElementsAre("solver", "a b=c", ""));
  EXPECT_EQ(request.programs[0].directory, "/tmp");
  EXPECT_THAT(request.programs[1].argv, ElementsAre("/bin/io"));
  EXPECT_THAT(request.hosts, ElementsAre("a", "b"));
  EXPECT_THAT(request.given, ElementsAre(Pair("PARENT_ROOT_PORT_NAME", "tag#0$x=1 $")));
  EXPECT_THAT(node.Spawned(0, absl::OkStatus()).answers,
              ElementsAre(Pair(0, "cmd=spawn_result rc=0 errcodes=0,0,0\n"),
                          Pair(0, "cmd=appnum appnum=0\n")));
}

TEST(PmiNode, SpawnThatFailsSaysWhy) {
  PmiNode node(OneNode(1));
  node.Take(0, kInit);
  node.Take(0, kFirstOfTwo);
  node.Take(0, kSecondOfTwo);
  EXPECT_THAT(node.Spawned(0, absl::NotFoundError("no program 'solver'")).answers,
              ElementsAre(Pair(0, "cmd=spawn_result rc=-1 msg=no_program_'solver'\n")));
}

TEST(PmiNode, SpawnOfTooManyOrOfNothingIsRefused) {
  for (const char* what : {"nprocs=4097\nexecname=x", "nprocs=0\nexecname=x", "nprocs=1",
                           "nprocs=1\nexecname=x\nargcnt=1000000"}) {
    PmiNode node(OneNode(1));
    node.Take(0, kInit);
    const PmiStep step = node.Take(0, absl::StrCat("mcmd=spawn\n", what, "\nendcmd\n"));
    ASSERT_THAT(step.answers, SizeIs(1)) << what;
    EXPECT_THAT(step.answers[0].second, testing::StartsWith("cmd=spawn_result rc=-1 msg=")) << what;
    EXPECT_THAT(step.spawns, IsEmpty());
  }
}

TEST(PmiNode, WhatFollowsARefusedSpawnIsDone) {
  PmiNode node(OneNode(1));
  node.Take(0, kInit);
  const PmiStep step = node.Take(0, "mcmd=spawn\nnprocs=0\nendcmd\ncmd=abort exitcode=7\n");
  EXPECT_THAT(step.answers, SizeIs(1));
  EXPECT_THAT(step.failures, SizeIs(1));
}

TEST(PmiNode, WhatIsSpawnedFindsWhatItsParentGives) {
  PmiPlace place = OneNode(1);
  place.given = {{"PARENT_ROOT_PORT_NAME", "tag#0$"}};
  PmiNode node(place);
  node.Take(0, kInit);
  EXPECT_EQ(Answer(node, "cmd=get kvsname=hl-1-r1 key=PARENT_ROOT_PORT_NAME"),
            "cmd=get_result rc=0 msg=success value=tag#0$");
}

TEST(PmiNode, BarrierOpensOnceAllAreInIt) {
  PmiNode node(OneNode(2));
  node.Take(0, kInit);
  node.Take(1, kInit);
  EXPECT_THAT(node.Take(1, "cmd=barrier_in\n").answers, IsEmpty());
  EXPECT_EQ(node.Awaited(), "rank 1 waits in MPI_Init or MPI_Finalize for rank 0");
  EXPECT_THAT(node.Take(0, "cmd=barrier_in\n").answers,
              ElementsAre(Pair(0, "cmd=barrier_out\n"), Pair(1, "cmd=barrier_out\n")));
  EXPECT_EQ(node.Awaited(), "");
}

TEST(PmiNode, SaysWhoHasNotComeToInit) {
  PmiNode node(OneNode(4));
  EXPECT_EQ(node.Awaited(), "");
  node.Take(0, kInit);
  node.Take(2, kInit);
  EXPECT_EQ(node.Awaited(), "ranks 0,2 are in MPI_Init, and ranks 1,3 have not come to it");
}

TEST(PmiNode, AbortHasItsCode) {
  PmiNode node({"hl-1-r1", 4, 2, 8, 1, 2, true});
  node.Take(1, kInit);
  const PmiStep step = node.Take(1, "cmd=abort exitcode=7 message=I give up exitcode=9\n");
  ASSERT_THAT(step.failures, SizeIs(1));
  EXPECT_EQ(step.failures[0].local_rank, 1);
  EXPECT_EQ(step.failures[0].exit_code, 7);
  EXPECT_EQ(step.failures[0].reason, "rank 5 called MPI_Abort(7)");
  EXPECT_THAT(step.closed, ElementsAre(1));
}

TEST(PmiNode, AbortIsNeverASuccess) {
  for (const char* code : {"0", "256", "many", ""}) {
    PmiNode node(OneNode(1));
    node.Take(0, kInit);
    const PmiStep step = node.Take(0, absl::StrCat("cmd=abort exitcode=", code, "\n"));
    ASSERT_THAT(step.failures, SizeIs(1)) << code;
    EXPECT_EQ(step.failures[0].exit_code, 1) << code;
  }
}

TEST(PmiNode, ExitBeforeFinalizeIsAFailure) {
  PmiNode node(OneNode(2));
  node.Take(1, kInit);
  const PmiStep step = node.Exited(1);
  ASSERT_THAT(step.failures, SizeIs(1));
  EXPECT_EQ(step.failures[0].reason, "rank 1 exited with code 0 before MPI_Finalize");
}

TEST(PmiNode, ExitBeforeInitIsAFailureForThoseInIt) {
  PmiNode before(OneNode(2)), after(OneNode(2));
  before.Take(0, kInit);
  const PmiStep left = before.Exited(1);
  EXPECT_THAT(after.Exited(1).failures, IsEmpty());
  const PmiStep came = after.Take(0, kInit);
  for (const PmiStep* step : {&left, &came}) {
    ASSERT_THAT(step->failures, SizeIs(1));
    EXPECT_EQ(step->failures[0].local_rank, 1);
    EXPECT_EQ(step->failures[0].reason,
              "rank 1 exited with code 0 before MPI_Init, and rank 0 waits in it");
  }
}

TEST(PmiNode, ExitIsNoneAfterFinalizeOrWithoutMpi) {
  PmiNode node(OneNode(2));
  node.Take(0, absl::StrCat(kInit, "cmd=finalize\n"));
  EXPECT_THAT(node.Exited(0).failures, IsEmpty());
  EXPECT_THAT(node.Exited(1).failures, IsEmpty());
}

TEST(PmiNode, NonsenseEndsOneSession) {
  const std::string nonsense[] = {
      "GET / HTTP/1.1\n",
      "\n",
      "cmd=\n",
      "cmd=get_maxes\n",  // Before init.
      absl::StrCat(kInit, "cmd=no_such\n"),
      absl::StrCat(kInit, kInit),
      "cmd=init pmi_version=2 pmi_subversion=0\n",
      std::string(kMaxPmiLine + 1, 'x'),
      absl::StrCat("mcmd=spawn\n", std::string(kMaxPmiLine + 1, 'x'), "\n"),
  };
  for (const std::string& text : nonsense) {
    PmiNode node(OneNode(2));
    const PmiStep step = node.Take(0, text);
    EXPECT_THAT(step.closed, ElementsAre(0)) << text.substr(0, 50);
    EXPECT_THAT(step.warnings, ElementsAre(HasSubstr("rank 0 is not served")))
        << text.substr(0, 50);
    EXPECT_THAT(node.Take(0, kInit).answers, IsEmpty());
    EXPECT_THAT(node.Take(1, kInit).answers, ElementsAre(Pair(1, kWelcome)));
  }
}

TEST(PmiNode, WhoDoesNotWaitForAnswersIsClosed) {
  PmiNode node(OneNode(2));
  std::string many(kInit);
  for (int i = 0; i < 100; ++i) many += "cmd=get_appnum\n";
  EXPECT_THAT(node.Take(0, many).closed, ElementsAre(0));
}

// Two nodes, one with two ranks and one with one, as their agents connect them.
class TwoNodes : public testing::Test {
 protected:
  // Gives both nodes the messages of both.
  std::vector<PmiStep> Meet(const PmiStep& a, const PmiStep& b) {
    const std::string text =
        absl::StrCat(EncodeMessage(a.messages.at(0)), EncodeMessage(b.messages.at(0)));
    const NodeMessages all = *DecodeMessages(text, 2);
    std::vector<PmiStep> steps;
    steps.push_back(first_.TakeMessages(all));
    steps.push_back(second_.TakeMessages(all));
    return steps;
  }

  PmiNode first_{{"hl-first", 0, 2, 3, 0, 2, true}};
  PmiNode second_{{"hl-second", 2, 1, 3, 1, 2, true}};
};

TEST_F(TwoNodes, ShareNameMappingAndWhatTheyPut) {
  const PmiStep a = first_.Take(0, kInit);
  first_.Take(1, kInit);
  const PmiStep b = second_.Take(0, kInit);
  EXPECT_THAT(second_.Take(0, "cmd=get_my_kvsname\n").answers, IsEmpty());
  EXPECT_THAT(Meet(a, b)[1].answers, ElementsAre(Pair(0, "cmd=my_kvsname kvsname=hl-first\n")));
  EXPECT_EQ(Answer(first_, "cmd=get kvsname=hl-first key=PMI_process_mapping"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,2),(1,1,1))");
  second_.Take(0, "cmd=put kvsname=hl-first key=card-2 value=FF 00\n");
  EXPECT_EQ(Answer(first_, "cmd=get kvsname=hl-first key=card-2"),
            "cmd=get_result rc=-1 msg=key_card-2_not_found value=unknown");
  first_.Take(0, "cmd=barrier_in\n");
  const PmiStep c = first_.Take(1, "cmd=barrier_in\n");
  const PmiStep d = second_.Take(0, "cmd=barrier_in\n");
  EXPECT_THAT(c.answers, IsEmpty());
  EXPECT_THAT(Meet(c, d)[0].answers,
              ElementsAre(Pair(0, "cmd=barrier_out\n"), Pair(1, "cmd=barrier_out\n")));
  EXPECT_EQ(Answer(first_, "cmd=get kvsname=hl-first key=card-2"),
            "cmd=get_result rc=0 msg=success value=FF 00");
}

TEST_F(TwoNodes, ExitBeforeInitIsToldOnTheOther) {
  const PmiStep a = first_.Take(1, kInit);
  const PmiStep b = second_.Exited(0);
  EXPECT_THAT(b.failures, IsEmpty());
  const std::vector<PmiStep> steps = Meet(a, b);
  ASSERT_THAT(steps[0].failures, SizeIs(1));
  EXPECT_EQ(steps[0].failures[0].reason,
            "rank 2 exited with code 0 before MPI_Init, and rank 1 waits in it");
  EXPECT_THAT(steps[1].failures, IsEmpty());
}

TEST_F(TwoNodes, ANodeThatIsDoneWithWhatMayBeMpiSaysThatNoneCame) {
  PmiNode perhaps({"hl-2-r1", 2, 2, 4, 1, 2, false});
  EXPECT_THAT(perhaps.Exited(0).messages, IsEmpty());  // The other rank may still call MPI_Init.
  const PmiStep done = perhaps.Exited(1);
  ASSERT_THAT(done.messages, SizeIs(1));
  EXPECT_EQ(done.messages[0].absent, "rank 3 exited with code 0 before MPI_Init");
}

TEST(DecodeMessages, RefusesWhatIsDamaged) {
  const std::string good = EncodeMessage({2, "hl-1", {{"key", "value"}}, ""});
  ASSERT_TRUE(DecodeMessages(good, 1).ok());
  EXPECT_FALSE(DecodeMessages(good, 2).ok());
  EXPECT_FALSE(DecodeMessages(absl::StrCat(good, "x"), 1).ok());
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodeMessages(good.substr(0, size), 1).ok()) << size;
  }
}

TEST(ProcessMapping, JoinsEqualNodes) {
  EXPECT_EQ(ProcessMapping({8}), "(vector,(0,1,8))");
  EXPECT_EQ(ProcessMapping({4, 4, 4}), "(vector,(0,3,4))");
  EXPECT_EQ(ProcessMapping({3, 1}), "(vector,(0,1,3),(1,1,1))");
  std::vector<int> uneven;
  for (int i = 0; i < 200; ++i) uneven.push_back(1 + i % 2);
  EXPECT_EQ(ProcessMapping(uneven), "");
}

TEST(PmiIdIn, TakesNothingElse) {
  EXPECT_EQ(PmiIdIn({"initack", "pmiid=77", false}), 77);
  EXPECT_EQ(PmiIdIn({"init", "pmiid=77", false}), std::nullopt);
  EXPECT_EQ(PmiIdIn({"initack", "pmiid=7x", false}), std::nullopt);
  EXPECT_EQ(WelcomeOfPmi(4, 3), "cmd=initack\ncmd=set size=4\ncmd=set rank=3\ncmd=set debug=0\n");
}

}  // namespace
}  // namespace hlaunch
