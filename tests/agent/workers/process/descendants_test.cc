// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/descendants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/agent/child.h"

namespace hlaunch {
namespace {

using ::testing::HasSubstr;

Command Shell(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }

KillReport KillAll(Duration patience = kPatience) {
  return KillAndReapDescendants(MonotonicClock(), MonotonicClock().Now() + patience);
}

TEST(Descendants, ListsParentsBeforeChildren) {
  Child child(Shell("setsid sh -c 'sleep 1000 & echo up; wait' & wait"));
  ASSERT_TRUE(child.ReadUntil("up"));
  const std::vector<ProcessEntry> found = Descendants(child.process().pid());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].parent, child.process().pid());
  EXPECT_EQ(found[0].session, found[0].pid);
  EXPECT_EQ(found[1].parent, found[0].pid);
  EXPECT_THAT(found[1].ToString(), HasSubstr(absl::StrCat("[", found[1].pid, "], state ")));
  EXPECT_EQ(SignalDescendants(child.process().pid(), SIGKILL), 2);
  EXPECT_TRUE(Gone(found[1].pid));
  child.Wait();
}

TEST(Descendants, ReadsNamesWithParentheses) {
  Child child(
      Shell("cp /bin/sleep '/tmp/a) S 1 ('; '/tmp/a) S 1 (' 1000 & "
            "while ! grep -q 'a) S' /proc/$!/comm; do :; done; echo up; wait"));
  ASSERT_TRUE(child.ReadUntil("up"));
  const std::vector<ProcessEntry> found = Descendants(child.process().pid());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].command, "a) S 1 (");
  ::unlink("/tmp/a) S 1 (");
  child.process().SignalGroup(SIGKILL);
  child.Wait();
}

TEST(KillAndReapDescendants, EndsOrphansInAnySession) {
  BecomeSubreaper();
  Child child(
      Shell("sleep 1000 & setsid sleep 1000 & setsid sh -c 'setsid sleep 1000 & :' & "
            "wait $!; echo left"));
  EXPECT_EQ(child.Wait().exit_code, 0);
  EXPECT_EQ(KillAll().ended, 3);
  EXPECT_TRUE(Descendants(::getpid()).empty());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(KillAndReapDescendants, EndsATreeThatKeepsForking) {
  BecomeSubreaper();
  // Each process leaves a child in a new session and exits.
  Child child(
      Shell("f() { setsid sh -c \"$1\" \"$1\" & }; echo up; "
            "export G='setsid sh -c \"$G\" & exit'; setsid sh -c \"$G\" & exit 0"));
  ASSERT_TRUE(child.ReadUntil("up"));
  EXPECT_EQ(child.Wait().exit_code, 0);
  EXPECT_TRUE(KillAll().stuck.empty());
  EXPECT_TRUE(Descendants(::getpid()).empty());
}

TEST(KillAndReapDescendants, SparesWhatItIsTold) {
  BecomeSubreaper();
  Child spared(Shell("sleep 1000 & echo up; wait"));
  ASSERT_TRUE(spared.ReadUntil("up"));
  const pid_t pid = spared.process().pid();
  Child child(Shell("setsid sleep 1000 & exit 0"));
  child.Wait();
  const KillReport report =
      KillAndReapDescendants(MonotonicClock(), MonotonicClock().Now() + kPatience, {pid});
  EXPECT_EQ(report.ended, 1);
  EXPECT_EQ(Descendants(::getpid()).size(), 2u);
  spared.process().SignalGroup(SIGKILL);
  spared.Wait();
  KillAll();
}

// A frozen group does not die by SIGKILL, like a process whose disk does not answer.
TEST(KillAndReapDescendants, ReportsWhatCannotBeKilled) {
  BecomeSubreaper();
  const std::string group = absl::StrCat("/sys/fs/cgroup/freezer/hlaunch-test-", ::getpid());
  if (::mkdir(group.c_str(), 0755) != 0) GTEST_SKIP() << "no cgroup v1 freezer to be had";
  Child child(Shell("setsid sleep 1000 & echo pid $!"));
  const pid_t pid = child.PidAfter("pid ");
  child.Wait();
  std::ofstream(group + "/cgroup.procs") << pid;
  std::ofstream(group + "/freezer.state") << "FROZEN";
  const KillReport report = KillAll(std::chrono::milliseconds(100));
  std::ofstream(group + "/freezer.state") << "THAWED";
  ASSERT_EQ(report.stuck.size(), 1u);
  EXPECT_EQ(report.stuck[0].pid, pid);
  EXPECT_EQ(report.ended, 0);
  EXPECT_EQ(KillAll().ended, 1);
  EXPECT_EQ(::rmdir(group.c_str()), 0);
}

TEST(HasChildren, LooksAtAllButTheSparedOnes) {
  Child one(Shell("read wait")), two(Shell("read wait"));
  EXPECT_TRUE(HasChildren());
  EXPECT_TRUE(HasChildren({one.process().pid()}));
  EXPECT_FALSE(HasChildren({one.process().pid(), two.process().pid()}));
  one.process().Signal(SIGKILL);
  one.Wait();
  EXPECT_FALSE(HasChildren({two.process().pid()}));
  two.process().Signal(SIGKILL);
  two.Wait();
  EXPECT_FALSE(HasChildren());
}

TEST(ReapOrphans, LeavesOwnedChildrenToTheirProcess) {
  BecomeSubreaper();
  Child owned(Shell("exit 7"));
  ASSERT_TRUE(Readable(owned.process().pidfd()));
  Child child(Shell("setsid sleep 1000 & echo pid $!; exec 1>&- 2>&-; kill -STOP $$"));
  const pid_t orphan = child.PidAfter("pid ");
  child.process().Signal(SIGKILL);
  child.Wait();
  ::kill(orphan, SIGKILL);  // Not before: the shell must not reap it.
  ASSERT_TRUE(Gone(orphan));
  const int before = ReapOrphans({owned.process().pid()});  // It stops at the owned process.
  EXPECT_EQ(owned.Wait().exit_code, 7);
  EXPECT_EQ(before + ReapOrphans({}), 1);
  EXPECT_FALSE(HasChildren());
}

}  // namespace
}  // namespace hlaunch
