// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/round_preparation.h"

#include <gtest/gtest.h>

#include <optional>

#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

// A node without its own checks, with its own store on loopback.
class RoundPreparationTest : public testing::Test {
 protected:
  RoundPreparationTest() { options_.store_address = "127.0.0.1"; }

  Assignment NodeZero(Round round) {
    NodeUpdate offer;
    store_.Offer(offer);
    Assignment assignment;
    assignment.round = round;
    assignment.master_addr = "127.0.0.1";
    assignment.master_port = offer.store_port;
    assignment.members = {"127.0.0.1"};
    return assignment;
  }

  AgentOptions options_;
  asio::io_context loop_{1};
  RoundStore store_{options_};
  WaitingNotice waiting_{loop_, [](const std::string&) {}};
  int answers_ = 0;
  std::string unfit_ = "no answer";
  RoundPreparation preparation_{loop_, options_, store_, waiting_,
                                [this](Round, const std::string& unfit, const NodeHealth&) {
                                  ++answers_;
                                  unfit_ = unfit;
                                }};
};

TEST_F(RoundPreparationTest, OpensTheStoreOnNodeRank0OnceForEachRound) {
  ASSERT_TRUE(store_.Renew().ok());
  preparation_.Start(NodeZero(1));
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(unfit_, "");
  preparation_.Start(NodeZero(1));
  EXPECT_EQ(answers_, 1);
}

TEST_F(RoundPreparationTest, FindsTheStoreOfAnotherNode) {
  ASSERT_TRUE(store_.Renew().ok());
  Assignment other = NodeZero(1);
  ASSERT_TRUE(store_.Open(other).ok());
  other.node_rank = 1;
  preparation_.Start(other);
  EXPECT_EQ(answers_, 0);
  while (answers_ == 0 && loop_.run_one() > 0) {
  }
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(unfit_, "");
}

TEST_F(RoundPreparationTest, SaysNothingOnceItIsCancelled) {
  ASSERT_TRUE(store_.Renew().ok());
  Assignment other = NodeZero(1);
  ASSERT_TRUE(store_.Open(other).ok());
  other.node_rank = 1;
  preparation_.Start(other);
  preparation_.Cancel();
  waiting_.Stop();
  loop_.run();
  EXPECT_EQ(answers_, 0);
}

TEST_F(RoundPreparationTest, RenewsTheStoreBetweenRounds) {
  ASSERT_TRUE(store_.Renew().ok());
  const Assignment first = NodeZero(1);
  preparation_.Start(first);
  ASSERT_TRUE(store_.Renew().ok());
  preparation_.Start(NodeZero(2));
  EXPECT_EQ(answers_, 2);
  EXPECT_EQ(unfit_, "");
}

}  // namespace
}  // namespace hlaunch
