// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/stall/last_words.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "asio/io_context.hpp"

namespace hlaunch {
namespace {

constexpr char kTraceback[] = "Traceback (most recent call last):\n";

TEST(LastWords, LooksOnceForAllThatIsWrittenAtATimeAndTellsWhatChanged) {
  asio::io_context loop;
  int looks = 0;
  std::vector<std::vector<int>> told;
  std::vector<int> given_up = {2};
  LastWords words(
      loop,
      [&] {
        ++looks;
        return given_up;
      },
      [&](std::vector<int> ranks) { told.push_back(std::move(ranks)); });
  const LastWords::Reader read = words.Read({});
  read(kTraceback);
  read(kTraceback);
  loop.run();
  EXPECT_EQ(looks, 1);
  read(kTraceback);
  loop.restart();
  loop.run();
  EXPECT_EQ(looks, 2);
  given_up = {};
  read("terminate called after throwing an instance of 'std::runtime_error'\n");
  loop.restart();
  loop.run();
  EXPECT_EQ(told, (std::vector<std::vector<int>>{{2}, {}}));
}

TEST(LastWords, PassesAllBytesOnAndDoesNotLookForOthers) {
  asio::io_context loop;
  std::string passed;
  std::optional<LastWords> words(
      std::in_place, loop, [] { return std::vector<int>{}; }, [](const std::vector<int>&) {});
  const LastWords::Reader read =
      words->Read([&](absl::string_view bytes) { passed.append(bytes.data(), bytes.size()); });
  read("loss 0.25\n");
  EXPECT_EQ(loop.poll(), 0u);
  words.reset();
  read(kTraceback);
  EXPECT_EQ(loop.run(), 0u);
  EXPECT_EQ(passed, std::string("loss 0.25\n") + kTraceback);
}

}  // namespace
}  // namespace hlaunch
