// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/user_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class WriteWholeFileTest : public testing::Test {
 protected:
  WriteWholeFileTest() { fs::create_directory(folder_); }
  ~WriteWholeFileTest() override { fs::remove_all(folder_); }

  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Makes a device like the kernel's; skips the test where that is not allowed.
  void MakeDevice(int minor_number) {
    const auto number = ::makedev(1, static_cast<unsigned>(minor_number));
    if (::mknod(path_.c_str(), S_IFCHR | 0600, number) != 0 ||
        !UniqueFd(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)).valid()) {
      GTEST_SKIP() << "no device can be made here";
    }
  }

  mode_t Type() const {
    struct stat there = {};
    return ::lstat(path_.c_str(), &there) == 0 ? there.st_mode & S_IFMT : 0;
  }

  std::ptrdiff_t Files() const { return std::distance(fs::directory_iterator(folder_), {}); }

  const std::string folder_ = testing::TempDir() + "user_files." + std::to_string(::getpid());
  const std::string path_ = folder_ + "/file";
};

TEST_F(WriteWholeFileTest, IsReadBackUpToALimit) {
  const std::string text(100'000, 'x');
  ASSERT_TRUE(WriteWholeFile(path_, text).ok());
  EXPECT_EQ(*ReadWholeFile(path_), text);
  EXPECT_EQ(ReadWholeFile(path_, text.size())->size(), text.size());
  EXPECT_TRUE(absl::IsResourceExhausted(ReadWholeFile(path_, text.size() - 1).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadWholeFile(path_ + "x").status()));
  EXPECT_EQ(ReadWholeFile(folder_).status().message(), "Is a directory");
  EXPECT_FALSE(ReadWholeFile("/proc/self/status")->empty());  // Its size is said to be 0.
}

TEST_F(WriteWholeFileTest, APipeThatNobodyWritesIsGivenUp) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto nobody = ReadWholeFile(path_, 100, std::chrono::milliseconds(20));
  EXPECT_THAT(std::string(nobody.status().message()),
              HasSubstr("nothing was written to this pipe"));
  const UniqueFd silent(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(
      absl::IsUnavailable(ReadWholeFile(path_, 100, std::chrono::milliseconds(20)).status()));
}

TEST_F(WriteWholeFileTest, APipeIsReadThoughItsWriterComesLateAndPauses) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  std::thread writer([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    for (const char* part : {"one ", "two"}) {
      ASSERT_GT(::write(file.get(), part, std::strlen(part)), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  EXPECT_EQ(ReadWholeFile(path_).value_or(""), "one two");
  writer.join();
}

TEST_F(WriteWholeFileTest, ReplacesAFileAndLeavesNoOther) {
  ASSERT_TRUE(WriteWholeFile(path_, "a longer text").ok());
  ASSERT_TRUE(WriteWholeFile(path_, "short").ok());
  EXPECT_EQ(Read(path_), "short");
  EXPECT_EQ(Files(), 1);
}

TEST_F(WriteWholeFileTest, KeepsAFileThatItMayNotReplace) {
  ASSERT_TRUE(WriteWholeFile(path_, "old", {0600, false}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(WriteWholeFile(path_, "new", {0600, false})));
  EXPECT_EQ(Read(path_), "old");
  EXPECT_EQ(Files(), 1);
}

TEST_F(WriteWholeFileTest, ReplacesWhatALinkLeadsTo) {
  fs::create_directory(folder_ + "/there");
  fs::create_symlink("there/real", folder_ + "/second");
  fs::create_symlink("second", path_);
  ASSERT_TRUE(WriteWholeFile(path_, "made", {0600, false}).ok());
  EXPECT_EQ(Read(folder_ + "/there/real"), "made");
  const fs::path other_name = folder_ + "/old";
  fs::create_hard_link(folder_ + "/there/real", other_name);
  ASSERT_TRUE(WriteWholeFile(path_, "anew").ok());
  EXPECT_EQ(Type(), S_IFLNK);
  EXPECT_EQ(Read(folder_ + "/there/real"), "anew");
  EXPECT_EQ(Read(other_name), "made");  // A new file took the old one's place.
}

TEST_F(WriteWholeFileTest, RefusesALinkWhereNoneIsFollowed) {
  fs::create_symlink("other", path_);
  NewFile plain;
  plain.follow = false;
  const absl::Status status = WriteWholeFile(path_, "x", plain);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is a link, and none is followed"));
  EXPECT_EQ(Type(), S_IFLNK);
  EXPECT_FALSE(fs::exists(folder_ + "/other"));
}

TEST_F(WriteWholeFileTest, WritesToADeviceAndLeavesItThere) {
  MakeDevice(3);  // As /dev/null.
  if (IsSkipped()) return;
  EXPECT_TRUE(WriteWholeFile(path_, "x").ok());
  EXPECT_TRUE(WriteWholeFile(path_, "x", {0600, false, true}).ok());
  EXPECT_EQ(Type(), S_IFCHR);
  EXPECT_EQ(Files(), 1);
}

TEST_F(WriteWholeFileTest, SaysThatADeviceIsFull) {
  MakeDevice(7);  // As /dev/full.
  if (IsSkipped()) return;
  EXPECT_EQ(WriteWholeFile(path_, "x").message(), "No space left on device");
  EXPECT_EQ(Type(), S_IFCHR);
}

TEST_F(WriteWholeFileTest, WritesToAPipeIfAProcessReadsIt) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(WriteWholeFile(path_, "x").message(), "no process reads this pipe");
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(WriteWholeFile(path_, "hello").ok());
  char text[8] = "";
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 5);
  EXPECT_STREQ(text, "hello");
  EXPECT_EQ(Type(), S_IFIFO);
}

TEST_F(WriteWholeFileTest, RefusesADirectoryAndASocket) {
  EXPECT_EQ(WriteWholeFile(folder_, "x", {0600, false}).message(), "Is a directory");
  ASSERT_EQ(::mknod(path_.c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_EQ(WriteWholeFile(path_, "x").message(), "it is a socket");
  EXPECT_EQ(Type(), S_IFSOCK);
}

TEST_F(WriteWholeFileTest, AddsToItsOwnOutput) {
  const UniqueFd stdout_before(::dup(STDOUT_FILENO));
  const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  fs::create_symlink("/proc/self/fd/1", folder_ + "/stdout");
  ASSERT_EQ(::dup2(file.get(), STDOUT_FILENO), STDOUT_FILENO);
  const bool began = ::write(STDOUT_FILENO, "first ", 6) == 6;
  const absl::Status written = WriteWholeFile(folder_ + "/stdout", "second");
  ::dup2(stdout_before.get(), STDOUT_FILENO);
  EXPECT_TRUE(began && written.ok()) << written;
  EXPECT_EQ(Read(path_), "first second");
  EXPECT_TRUE(fs::is_symlink(folder_ + "/stdout"));
}

TEST_F(WriteWholeFileTest, SaysWhyItCannotWrite) {
  EXPECT_EQ(WriteWholeFile(folder_ + "/no/file", "x").message(), "No such file or directory");
  EXPECT_EQ(WriteWholeFile(folder_ + "/" + std::string(300, 'x'), "x").message(),
            "File name too long");
  fs::create_symlink("file", path_);
  EXPECT_THAT(std::string(WriteWholeFile(path_, "x").message()), HasSubstr("symbolic links"));
}

}  // namespace
}  // namespace hlaunch
