// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/cause/compare_places.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/rendezvous/rounds.h"

namespace hlaunch {
namespace {

WorkerFailure At(Rank rank, int line, const std::string& code) {
  WorkerFailure failure = Failure(rank, 1);
  failure.traceback = absl::StrCat(
      "Traceback (most recent call last):\n"
      "  File \"/home/me/t.py\", line 99, in <module>\n    main()\n"
      "  File \"/home/me/t.py\", line ",
      line, ", in train\n    ", code,
      "\n  File \"/usr/lib/python3/dist-packages/torch/c10d.py\", line 7, in wrapper\n"
      "    work.wait()\n"
      "  File \"/opt/build/python/hlaunch/library.py\", line 125, in check\n"
      "    raise ERRORS[status](words)\nRuntimeError: Timed out waiting 3000ms");
  return failure;
}

TEST(ComparePlaces, NamesTheFewestAndWhereTheOthersAre) {
  const auto places = ComparePlaces({At(2, 27, "dist.all_reduce(x)"), At(1, 37, "dist.recv(x)"),
                                     At(0, 27, "dist.all_reduce(x)")});
  ASSERT_TRUE(places);
  EXPECT_EQ(places->index, 1u);
  EXPECT_EQ(
      places->did,
      "waited in t.py:37 `dist.recv(x)`, ranks 0, 2 in t.py:27 `dist.all_reduce(x)`: all ranks "
      "waited in vain, they called different collectives");
}

TEST(ComparePlaces, CountsRanksBeyondFour) {
  std::vector<WorkerFailure> failures = {At(9, 37, "f()"), At(8, 37, "f()")};
  for (Rank rank = 0; rank < 6; ++rank) failures.push_back(At(rank, 27, "g()"));
  EXPECT_EQ(
      ComparePlaces(failures)->did,
      "waited in t.py:37 `f()` with rank 8, ranks 0, 1, 2, 3 and 2 more in t.py:27 `g()`: all "
      "ranks waited in vain, they called different collectives");
}

TEST(ComparePlaces, SaysNothingOfOnePlaceOrAnUnknownOne) {
  EXPECT_FALSE(ComparePlaces({At(0, 27, "f()"), At(1, 27, "f()")}));
  EXPECT_FALSE(ComparePlaces({At(0, 27, "f()"), Failure(1, 1)}));
  EXPECT_FALSE(ComparePlaces({}));
}

}  // namespace
}  // namespace hlaunch
