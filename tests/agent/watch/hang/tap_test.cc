// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/tap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <iterator>

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

TEST(Tap, HoldsModulesThatPythonLoadsByItself) {
  const auto tap = Tap::Make("").value();
  const std::string packages = tap->directory();
  EXPECT_THAT(Content(packages + "/sitecustomize.py"), HasSubstr("hlaunch_tap.register()"));
  EXPECT_THAT(Content(packages + "/hlaunch_tap.py"), HasSubstr("def register():"));
  EXPECT_THAT(Content(packages + "/hlaunch_tap.py"), HasSubstr("def join_jax(clusters):"));
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
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST(Tap, LeavesADirectoryThatIsNotItsOwnAsItWas) {
  const std::string directory = ::testing::TempDir() + "tap_of_logs";
  std::filesystem::create_directory(directory);
  auto tap = Tap::Make(directory).value();
  EXPECT_EQ(tap->directory(), directory);
  EXPECT_EQ(tap->to_remove(), "");
  tap.reset();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove(directory);
}

TEST(Tap, IsElsewhereIfTheNameIsTooLongForSockets) {
  const std::string parent = ::testing::TempDir() + std::string(90, 'x');
  std::filesystem::create_directory(parent);
  auto tap = Tap::Make(parent).value();
  const std::string directory = tap->directory();
  EXPECT_LT(TapSocketPath(directory, 123'456, 4'194'304).size(), sizeof(sockaddr_un::sun_path));
  EXPECT_EQ(directory, tap->to_remove());
  EXPECT_TRUE(std::filesystem::is_empty(parent));
  tap.reset();
  EXPECT_FALSE(std::filesystem::exists(directory));
  std::filesystem::remove(parent);
}

TEST(Tap, SaysWhereItCannotBe) {
  const auto tap = Tap::Make("/no such directory");
  EXPECT_TRUE(absl::IsFailedPrecondition(tap.status()));
  EXPECT_THAT(std::string(tap.status().message()), HasSubstr("/no such directory: "));
}

}  // namespace
}  // namespace hlaunch
