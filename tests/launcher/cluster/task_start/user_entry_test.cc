// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/task_start/user_entry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ReadUserEntry, TakesALineOfGetent) {
  const auto user = ReadUserEntry("ann:x:1001:100:Ann A.,,,:/home/ann:/bin/bash\n");
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->name, "ann");
  EXPECT_EQ(user->uid, 1001u);
  EXPECT_EQ(user->gid, 100u);
  EXPECT_EQ(user->home, "/home/ann");
  EXPECT_EQ(user->shell, "/bin/bash");
}

TEST(ReadUserEntry, RefusesWhatIsNone) {
  for (const char* text : {"", "\n", "ann:x:1001", "ann:x:-1:100::/:/bin/sh", ":x:1:1::/:/bin/sh",
                           "ann:x:99999999999:1::/:/bin/sh"}) {
    EXPECT_FALSE(ReadUserEntry(text).ok()) << text;
  }
}

TEST(ReadGroups, TakesWhatFollowsTheName) {
  EXPECT_THAT(*ReadGroups("ann                   4 24 1001\n", "ann"), ElementsAre(4u, 24u, 1001u));
  EXPECT_THAT(*ReadGroups("ann                  \n", "ann"), IsEmpty());
  EXPECT_THAT(*ReadGroups("a.very.long.name.of.ann\n", "a.very.long.name.of.ann"), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(ReadGroups("", "ann").status()));
}

TEST(ReadGroups, TakesNoNumberOfTheNameForAGroup) {
  EXPECT_THAT(*ReadGroups("ann 0                 4 24\n", "ann 0"), ElementsAre(4u, 24u));
  EXPECT_THAT(*ReadGroups("HOST\\a b 10           4\n", "HOST\\a b 10"), ElementsAre(4u));
  EXPECT_FALSE(ReadGroups("anna                  4\n", "ann").ok());
}

TEST(CheckGetent, TellsWhatIsNotThereFromWhatIsNotKnown) {
  EXPECT_TRUE(CheckGetent(0).ok());
  EXPECT_TRUE(absl::IsNotFound(CheckGetent(2)));
  EXPECT_TRUE(absl::IsUnavailable(CheckGetent(-1)));
  EXPECT_TRUE(absl::IsUnavailable(CheckGetent(1)));
  EXPECT_TRUE(absl::IsUnavailable(CheckGetent(127)));
}

TEST(ReadGroupNumber, TakesALineOfGetent) {
  EXPECT_EQ(ReadGroupNumber("wheel:x:10:ann,bob\n").value(), 10u);
  EXPECT_FALSE(ReadGroupNumber("").ok());
}

struct Row {
  uid_t here, asked;
  UserRule rule;
  const char* why;  // Empty if it is allowed.
};

TEST(CheckUser, LetsUsersInAndSaysWhyNot) {
  const Row rows[] = {
      {1001, 1001, {}, ""},
      {1002, 1001, {}, "has the number 1002 here, and 1001 where the job was submitted"},
      {0, 0, {}, "allow-root = yes"},
      {0, 0, {1000, true}, ""},
      {33, 33, {}, "below least-uid, 1000"},
      {33, 33, {1000, true}, "below least-uid"},
      {500, 500, {500, false}, ""},
      {61183, 61183, {}, ""},
      {61184, 61184, {}, "from 61184 to 65519 are of services"},
      {65519, 65519, {}, "from 61184 to 65519 are of services"},
      {65534, 65534, {}, "runs no jobs"},
      {65535, 65535, {}, "runs no jobs"},
      {4294967295, 4294967295, {}, "runs no jobs"},
      {100000, 100000, {}, ""}};
  for (const Row& row : rows) {
    UserEntry user;
    user.name = "ann";
    user.uid = row.here;
    const absl::Status status = CheckUser(user, "ann", row.asked, row.rule);
    EXPECT_EQ(status.ok(), *row.why == '\0') << row.here;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.why));
  }
}

}  // namespace
}  // namespace hlaunch
