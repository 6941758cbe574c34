// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/resolver/ask_in_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "proto/base/mutex.h"

namespace hlaunch {
namespace {

using std::chrono::hours;
using testing::ElementsAre;
using testing::IsEmpty;

// A resolver that is silent about a family until it has an answer for it. The threads that ask it
// share it with the test.
class Resolver {
 public:
  void Knows(int family, FoundHost answer) {
    MutexLock lock(&mu_);
    answers_[family] = std::move(answer);
    known_.SignalAll();
  }

  FoundHost Ask(int family) {
    MutexLock lock(&mu_);
    while (answers_.count(family) == 0) known_.Wait(&mu_);
    return answers_[family];
  }

 private:
  Mutex mu_;
  CondVar known_;
  std::map<int, FoundHost> answers_ ABSL_GUARDED_BY(mu_);
};

class AskInTimeTest : public testing::Test {
 protected:
  ~AskInTimeTest() override {  // Whoever asks still is answered, and its thread ends.
    for (const int family : {AF_UNSPEC, AF_INET, AF_INET6}) resolver_->Knows(family, {});
  }

  FoundHost Ask(Duration both, Duration other) {
    const auto ask = [resolver = resolver_](const std::string&, int family) {
      return resolver->Ask(family);
    };
    return AskInTime("host", ask, {both, other});
  }

  const std::shared_ptr<Resolver> resolver_ = std::make_shared<Resolver>();
};

const FoundHost kV4 = {{"10.0.0.1"}, 0, ""};
const FoundHost kV6 = {{"fd00::1"}, 0, ""};

TEST_F(AskInTimeTest, TakesTheAnswerAboutBothFamilies) {
  resolver_->Knows(AF_UNSPEC, {{"fd00::1", "10.0.0.1"}, 0, ""});
  EXPECT_THAT(Ask(hours(1), hours(1)).literals, ElementsAre("fd00::1", "10.0.0.1"));
  resolver_->Knows(AF_UNSPEC, {{}, EAI_NONAME, "unknown"});
  EXPECT_EQ(Ask(hours(1), hours(1)).error, EAI_NONAME);
}

TEST_F(AskInTimeTest, GoesOnWithOneFamilyWhereTheServerIsSilentAboutTheOther) {
  resolver_->Knows(AF_INET, kV4);
  EXPECT_THAT(Ask(Duration::zero(), Duration::zero()).literals, ElementsAre("10.0.0.1"));
}

TEST_F(AskInTimeTest, GoesOnWithIpv6Alone) {
  resolver_->Knows(AF_INET6, kV6);
  EXPECT_THAT(Ask(Duration::zero(), Duration::zero()).literals, ElementsAre("fd00::1"));
}

TEST_F(AskInTimeTest, HasTheAddressesOfBothFamiliesWhereTheyComeApart) {
  resolver_->Knows(AF_INET, kV4);
  resolver_->Knows(AF_INET6, kV6);
  EXPECT_THAT(Ask(Duration::zero(), hours(1)).literals, ElementsAre("10.0.0.1", "fd00::1"));
}

TEST_F(AskInTimeTest, AFamilyWithoutAddressesDoesNotEndTheWaitForTheOther) {
  resolver_->Knows(AF_INET6, {{}, EAI_NODATA, "no address"});
  resolver_->Knows(AF_INET, kV4);
  EXPECT_THAT(Ask(Duration::zero(), hours(1)).literals, ElementsAre("10.0.0.1"));
}

TEST_F(AskInTimeTest, SaysWhichErrorMayPass) {
  resolver_->Knows(AF_INET, {{}, EAI_NONAME, "unknown"});
  resolver_->Knows(AF_INET6, {{}, EAI_AGAIN, "no answer"});
  const FoundHost found = Ask(Duration::zero(), hours(1));
  EXPECT_EQ(found.error, EAI_AGAIN);
  EXPECT_THAT(found.literals, IsEmpty());
}

}  // namespace
}  // namespace hlaunch
