// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/node_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

TEST(NodeNews, TellsEachLineOnceThoughANewRendezvousCountsFromOneAgain) {
  asio::io_context loop(1);
  NodeNews node(loop, {});
  const auto told = [&](const std::vector<News>& latest) {
    testing::internal::CaptureStderr();
    node.OfJob(latest);
    return testing::internal::GetCapturedStderr();
  };
  const std::vector<News> first = {{1, "node1 has not been heard of for 5 s"}};
  const std::vector<News> more = {first[0], {2, "node1 is heard of again"}};
  const std::vector<News> anew = {{1, "node1 leads it since"}};
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told(first), "hlaunch: node1 has not been heard of for 5 s\n");
  EXPECT_EQ(told(first), "");
  EXPECT_EQ(told(more), "hlaunch: node1 is heard of again\n");
  EXPECT_EQ(told(anew), "hlaunch: node1 leads it since\n");
  EXPECT_EQ(told({{1, "node2 leads it since"}}), "hlaunch: node2 leads it since\n");
  EXPECT_EQ(told(first), "hlaunch: node1 has not been heard of for 5 s\n");
  EXPECT_EQ(told({first[0], {2, "node2 was refused"}, {3, "again"}}),
            "hlaunch: node2 was refused\nhlaunch: again\n");
}

}  // namespace
}  // namespace hlaunch
