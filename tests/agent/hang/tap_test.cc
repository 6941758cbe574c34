// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/hang/tap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Tap, IsADirectoryThatItsOwnerAloneMayEnter) {
  const auto tap = Tap::Make("").value();
  struct stat st = {};
  ASSERT_EQ(::stat(tap->directory().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST(Tap, HoldsAPackageThatTorchLoadsByItself) {
  const auto tap = Tap::Make("").value();
  const std::string packages = TapPackages(tap->directory());
  EXPECT_EQ(Content(packages + "/hlaunch_tap-1.dist-info/entry_points.txt"),
            "[torch.backends]\nhlaunch_tap = hlaunch_tap:register\n");
  EXPECT_THAT(Content(packages + "/hlaunch_tap.py"), HasSubstr("def register():"));
}

TEST(Tap, NamesTheServersOfARank) {
  const auto tap = Tap::Make("").value();
  for (const char* name : {"1.90", "1.7", "11.5", "1.x", "0.4"}) {
    std::ofstream(tap->directory() + "/" + name) << "";
  }
  EXPECT_THAT(TapServers(tap->directory(), 1), ElementsAre(7, 90));
  EXPECT_THAT(TapServers(tap->directory(), 2), IsEmpty());
  EXPECT_THAT(TapServers("/no such directory", 1), IsEmpty());
  EXPECT_EQ(TapSocketPath("/tmp/t", 1, 90), "/tmp/t/1.90");
}

TEST(Tap, LeavesNothingBehind) {
  auto tap = Tap::Make("").value();
  const std::string directory = tap->directory();
  tap.reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(directory).parent_path()));
}

TEST(Tap, IsNotMadeWhereSocketsCouldHaveNoName) {
  const auto tap = Tap::Make("/tmp/" + std::string(90, 'x'));
  EXPECT_TRUE(absl::IsFailedPrecondition(tap.status())) << tap.status();
  EXPECT_TRUE(absl::StrContains(tap.status().message(), "TMPDIR"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Tap::Make("/no such directory").status()));
}

}  // namespace
}  // namespace hlaunch
