// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/socket/socket_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> TextsIn(const std::string& sockets, std::optional<uid_t> uid) {
  std::vector<std::string> texts;
  for (const JobSocketName& name : JobSocketsIn(sockets, uid)) texts.push_back(name.text);
  return texts;
}

// A line of /proc/net/unix.
std::string Line(const std::string& flags, const std::string& path) {
  return absl::StrCat("0000000012345678: 00000002 00000000 ", flags, " 0001 01 4711 ", path, "\n");
}

constexpr char kListens[] = "00010000";

TEST(JobSocketsIn, FindsThoseOfOneUserOrOfAll) {
  const std::string sockets = absl::StrCat(
      "Num       RefCount Protocol Flags    Type St Inode Path\n",
      Line(kListens, "@hlaunch-job/1000/7-00000000000000ab"), Line(kListens, "/run/dbus/socket"),
      Line(kListens, "@hlaunch-job/0/8-00000000000000cd"), Line(kListens, ""));
  EXPECT_THAT(TextsIn(sockets, 1000), testing::ElementsAre("hlaunch-job/1000/7-00000000000000ab"));
  EXPECT_THAT(TextsIn(sockets, std::nullopt), SizeIs(2));
  EXPECT_THAT(TextsIn(sockets, 7), IsEmpty());
}

// The kernel shows a connection to a socket by the socket's own name.
TEST(JobSocketsIn, NamesASocketOnceThoughManyAreConnected) {
  const std::string name = "@hlaunch-job/0/8-00000000000000cd";
  EXPECT_THAT(
      TextsIn(absl::StrCat(Line("00000000", name), Line(kListens, name), Line(kListens, name)), 0),
      SizeIs(1));
  EXPECT_THAT(TextsIn(Line("00000000", name), 0), IsEmpty());
}

TEST(JobSocketsIn, TakesNothingElseForOne) {
  for (const char* path :
       {"hlaunch-job/0/8", "@hlaunch-job/", "@hlaunch-job/x/8", "@hlaunch-job/-1/8",
        "@hlaunch-job/4294967296/8", "@hlaunch-jobs/0/8", "/hlaunch-job/0/8"}) {
    EXPECT_THAT(TextsIn(Line(kListens, path), std::nullopt), IsEmpty()) << path;
  }
  EXPECT_THAT(TextsIn(Line("zz", "@hlaunch-job/0/8"), std::nullopt), IsEmpty());
}

TEST(NewJobSocketName, IsFoundAgain) {
  const JobSocketName name = NewJobSocketName(1000, 42, 0xab);
  EXPECT_EQ(name.text, "hlaunch-job/1000/42-00000000000000ab");
  EXPECT_THAT(JobSocketsIn(Line(kListens, absl::StrCat("@", name.text)), 1000),
              testing::ElementsAre(name));
}

}  // namespace
}  // namespace hlaunch
