// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/tasks/task_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using std::chrono::seconds;

// An address that only this test uses.
std::string Address(const char* name) { return absl::StrCat("hlaunch-test-", ::getpid(), name); }

Instant Soon() { return MonotonicClock().Now() + seconds(20); }

UniqueFd Accept(int listener) {
  pollfd waiting = {listener, POLLIN, 0};
  ::poll(&waiting, 1, 20000);
  return AcceptOwn(listener);
}

TEST(TaskSocket, CarriesAMessageOfAnySizeWithDescriptors) {
  const UniqueFd listener = *ListenAsTask(Address("message"));
  const UniqueFd one = *ConnectToTask(Address("message"));
  const UniqueFd other = Accept(listener.get());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const std::string large(1 << 20, 'x');
  const pid_t child = ::fork();  // It blocks until the other side reads.
  if (child == 0) {
    const int descriptors[] = {write_end.get()};
    ::_exit(SendTaskMessage(one.get(), {"start", large}, descriptors).ok() ? 0 : 1);
  }
  write_end.Close();
  const auto received = ReceiveTaskMessage(other.get(), Soon());
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(received->words[1], large);
  ASSERT_EQ(received->descriptors.size(), 1U);
  ASSERT_EQ(::write(received->descriptors[0].get(), "a", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
  ::waitpid(child, nullptr, 0);
}

TEST(TaskSocket, SaysWhoIsNotThereAndWhatIsTaken) {
  EXPECT_EQ(ConnectToTask(Address("nobody")).status().code(), absl::StatusCode::kNotFound);
  const UniqueFd listener = *ListenAsTask(Address("taken"));
  EXPECT_EQ(ListenAsTask(Address("taken")).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST(TaskSocket, EndsWithTheOtherSide) {
  const UniqueFd listener = *ListenAsTask(Address("ends"));
  UniqueFd one = *ConnectToTask(Address("ends"));
  const UniqueFd other = Accept(listener.get());
  ASSERT_EQ(::write(one.get(), "hlT1", 4), 4);
  one.Close();
  EXPECT_EQ(ReceiveTaskMessage(other.get(), Soon()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(SendTaskMessage(other.get(), {"end", "0"}).ok());
}

TEST(TaskSocket, IsOfOneUserAlone) {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const std::string address = Address("mine");
  const UniqueFd listener = *ListenAsTask(address);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kNobody) != 0) ::_exit(2);
    ::_exit(ConnectToTask(address).status().code() == absl::StatusCode::kPermissionDenied ? 0 : 1);
  }
  EXPECT_FALSE(Accept(listener.get()).valid()) << "a stranger's connection";
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hlaunch
