// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/file_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/rendezvous/store_fixtures.h"

namespace hlaunch {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

TEST(FileStore, IsSharedByProcesses) {
  const StoreFolder folder;
  const std::string path = folder.path + "/store";
  constexpr int kChildren = 3;
  for (int child = 0; child < kChildren; ++child) {
    if (::fork() != 0) continue;
    auto store = FileStore::Open(path);
    bool good = store.ok();
    for (int i = 0; good && i < 50; ++i) good = (*store)->Add("n", 1).ok();
    good = good && (*store)->Get("go", In(100s)).ok();
    ::_exit(good ? 0 : 1);
  }
  const auto store = *FileStore::Open(path);
  ASSERT_TRUE(store->Set("go", "").ok());
  for (int child = 0; child < kChildren; ++child) {
    int status = -1;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(*store->Add("n", 0), kChildren * 50);
}

TEST(FileStore, WhatAKilledWriterLeftHalfWrittenNeverWas) {
  const StoreFolder folder;
  const std::string path = folder.path + "/store";
  ASSERT_TRUE((*FileStore::Open(path))->Set("whole", "1").ok());
  const auto whole = std::filesystem::file_size(path);
  ASSERT_TRUE((*FileStore::Open(path))->Set("half", "2").ok());
  for (auto size = whole; size < whole + 8; size += 3) {
    std::filesystem::resize_file(path, size);
    const auto store = *FileStore::Open(path);
    EXPECT_FALSE(*store->Check({"half"}));
    ASSERT_TRUE(store->Set("next", "3").ok());
    EXPECT_EQ(*(*FileStore::Open(path))->Get("next", In(0s)), "3");
  }
}

TEST(FileStore, CallsThatChangeNothingLeaveTheFileAsItIs) {
  const StoreFolder folder;
  const std::string path = folder.path + "/store";
  const auto store = *FileStore::Open(path);
  ASSERT_TRUE(store->Set("k", "v").ok());
  const auto size = std::filesystem::file_size(path);
  EXPECT_EQ(*store->CompareAndSet("k", "other", "new"), "v");
  EXPECT_EQ(*store->CompareAndSet("absent", "same", "same"), "same");
  EXPECT_FALSE(*store->Delete("absent"));
  EXPECT_EQ(std::filesystem::file_size(path), size);
  EXPECT_EQ(*store->CompareAndSet("k", "v", "new"), "new");
  EXPECT_EQ(*(*FileStore::Open(path))->Get("k", In(0s)), "new");
}

TEST(FileStore, AFileThatIsNoStoreIsRefusedAndStaysAsItIs) {
  const StoreFolder folder;
  const std::string path = folder.path + "/notes";
  std::ofstream(path) << "my notes of today, more than a line";
  const auto size = std::filesystem::file_size(path);
  const absl::Status refused = FileStore::Open(path).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(path), HasSubstr("does not exist yet")));
  EXPECT_EQ(std::filesystem::file_size(path), size);
  EXPECT_TRUE(absl::IsInvalidArgument(FileStore::Open(folder.path + "/no/store").status()));
}

}  // namespace
}  // namespace hlaunch
