// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/last_words.h"

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

TEST(LastWords, LooksForWordsThatComeInPieces) {
  for (const std::string words : {"Traceback (most recent call last)", "terminate called"}) {
    for (size_t cut = 1; cut + 1 < words.size(); ++cut) {
      asio::io_context loop;
      int looks = 0;
      LastWords last_words(
          loop,
          [&] {
            ++looks;
            return std::vector<int>{};
          },
          [](const std::vector<int>&) {});
      const LastWords::Reader read = last_words.Read({});
      read(std::string(100, '.'));
      read(words.substr(0, cut));
      read(words.substr(cut, 1));
      loop.poll();
      EXPECT_TRUE(loop.stopped() && looks == 0) << "nothing is due: " << words << " " << cut;
      read(words.substr(cut + 1));
      loop.restart();
      loop.poll();
      EXPECT_TRUE(!loop.stopped() || looks == 1) << "a look is due: " << words << " " << cut;
    }
  }
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
