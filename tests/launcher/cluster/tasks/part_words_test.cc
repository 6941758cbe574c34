// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/part_words.h"

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hlaunch {
namespace {

PartOrder Order(int nodes, int rank) {
  PartOrder order;
  order.job = 7;
  order.node_rank = rank;
  order.min_nodes = order.max_nodes = nodes;
  order.workers = 4;
  order.token = "secret";
  order.request.script = {"train.py", "--lr", "0.1"};
  return order;
}

// The words of `order` without the notice that parts of several nodes get.
std::string Words(const PartOrder& order) {
  const std::string words = absl::StrJoin(StartOfPart(order, "/spool/7/job").options, " ");
  return std::string(absl::StripSuffix(words, " --drain-file /spool/7/drain"));
}

struct Row {
  const char* what;
  PartOrder order;
  const char* words;
};

PartOrder With(PartOrder order, void (*change)(PartOrder&)) {
  change(order);
  return order;
}

TEST(StartOfPart, MakesTheWordsOfAnOrdinaryJob) {
  const Row rows[] = {
      {"one node meets nobody", Order(1, 0),
       "--nnodes 1 --nproc-per-node 4 --rdzv-id hlaunch-7 --cluster none --devices none"},
      {"node 0 of two hosts where nothing is named", Order(2, 0),
       "--nnodes 2 --nproc-per-node 4 --node-rank 0 --rdzv-id hlaunch-7 --cluster none "
       "--devices none"},
      {"the others join there, and leave talking to node 0",
       With(Order(2, 1), [](PartOrder& order) { order.meeting = "10.0.0.1:29401"; }),
       "--nnodes 2 --nproc-per-node 4 --node-rank 1 --rdzv-endpoint 10.0.0.1:29401 --rdzv-conf "
       "is_host=0 --rdzv-id hlaunch-7 --cluster none --devices none --quiet"},
      {"devices by their numbers",
       With(Order(1, 0),
            [](PartOrder& order) {
              order.device_kind = "hpu";
              order.devices = {0, 3};
            }),
       "--nnodes 1 --nproc-per-node 4 --rdzv-id hlaunch-7 --cluster none --devices 0,3"},
      {"the rendezvous ranks where nodes may be missing",
       With(Order(4, 0), [](PartOrder& order) { order.min_nodes = 2; }),
       "--nnodes 2:4 --nproc-per-node 4 --rdzv-id hlaunch-7 --cluster none --devices none"},
      {"or where there are spares", With(Order(2, 0), [](PartOrder& order) { order.spares = 1; }),
       "--nnodes 2:2 --nproc-per-node 4 --spares 1 --rdzv-id hlaunch-7 --cluster none "
       "--devices none"},
      {"one node and a spare meet as well",
       With(Order(1, 0), [](PartOrder& order) { order.spares = 1; }),
       "--nnodes 1:1 --nproc-per-node 4 --spares 1 --rdzv-id hlaunch-7 --cluster none "
       "--devices none"},
      {"the user's own words come first, and his rdzv-conf is kept",
       With(Order(2, 1),
            [](PartOrder& order) {
              order.meeting = "[fd77::1]:29400";
              order.request.options = {"-v", "--rdzv-conf=join_timeout=9"};
            }),
       "-v --rdzv-conf=join_timeout=9 --nnodes 2 --nproc-per-node 4 --node-rank 1 --rdzv-endpoint "
       "[fd77::1]:29400 --rdzv-conf join_timeout=9,is_host=0 --rdzv-id hlaunch-7 --cluster none "
       "--devices none"}};
  for (const Row& row : rows) EXPECT_EQ(Words(row.order), row.words) << row.what;
}

TEST(StartOfPart, LooksForANoticeThatRootAloneWrites) {
  const auto has_notice = [](const PartOrder& order) {
    const std::string words = absl::StrJoin(StartOfPart(order, "/spool/7/job").options, " ");
    return absl::EndsWith(words, " --drain-file /spool/7/drain");
  };
  EXPECT_TRUE(has_notice(Order(2, 0)));
  EXPECT_FALSE(has_notice(Order(1, 0)));  // No other node could take its place.
  PartOrder own = Order(2, 0);
  own.request.options = {"--drain-file", "/tmp/notice"};
  EXPECT_FALSE(has_notice(own));
}

TEST(StartOfPart, KeepsTheSecretOutOfTheWords) {
  const StartMessage message = StartOfPart(Order(2, 0), "/spool/7/job");
  EXPECT_EQ(message.token, "secret");
  EXPECT_EQ(absl::StrJoin(message.options, " ").find("secret"), std::string::npos);
  EXPECT_EQ(StartOfPart(Order(1, 0), "/spool/7/job").token, "");
}

TEST(StartOfPart, ItsFolderBeatsOneThatTheUserNames) {
  PartOrder order = Order(1, 0);
  order.request.environment = {"HLAUNCH_DETACHED=/etc"};
  EXPECT_EQ(StartOfPart(order, "/spool/7/job").environment.back(), "HLAUNCH_DETACHED=/spool/7/job");
}

}  // namespace
}  // namespace hlaunch
