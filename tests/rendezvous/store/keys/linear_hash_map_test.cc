// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/linear_hash_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using Map = LinearHashMap<int>;

std::map<std::string, int> ContentOf(const Map& map) {
  std::map<std::string, int> content;
  for (const Map::Entry& entry : map) content.emplace(entry.key(), entry.value);
  return content;
}

// The numbers of keys cross all sizes at which buckets are split and merged.
TEST(LinearHashMap, HoldsWhatWasAddedAndNotErasedAtEachSize) {
  Map map;
  std::map<std::string, int> expected;
  std::minstd_rand random(1);
  for (const unsigned adds_of_ten : {9u, 2u, 7u, 0u}) {
    for (int i = 0; i < 4000; ++i) {
      const std::string key = absl::StrCat("k", random() % 5000);
      Map::Entry* entry = map.Find(key);
      ASSERT_EQ(entry != nullptr, expected.contains(key)) << key;
      if (random() % 10 < adds_of_ten) {
        if (entry == nullptr) entry = &map.Add(key);
        entry->value = expected[key] = i;
      } else if (entry != nullptr) {
        map.Erase(*entry);
        expected.erase(key);
      }
      ASSERT_EQ(map.size(), expected.size());
    }
    EXPECT_EQ(ContentOf(map), expected);
  }
  while (!map.empty()) map.Erase(*map.Find(ContentOf(map).begin()->first));
  EXPECT_EQ(map.begin(), map.end());
  map.Add("again").value = 7;
  EXPECT_EQ(map.Find("again")->value, 7);
}

TEST(LinearHashMap, TellsAnyKeysApart) {
  Map map;
  map.Add("").value = 1;
  map.Add(std::string(1, '\0')).value = 2;
  map.Add(std::string(5000, 'x')).value = 3;
  EXPECT_EQ(map.Find("")->value, 1);
  EXPECT_EQ(map.Find(std::string(1, '\0'))->value, 2);
  EXPECT_EQ(map.Find(std::string(5000, 'x'))->value, 3);
  EXPECT_EQ(map.Find(std::string(4999, 'x')), nullptr);
}

TEST(LinearHashMap, AnEntryStaysWhereItIs) {
  Map map;
  Map::Entry& first = map.Add("first");
  for (int i = 0; i < 5000; ++i) map.Add(absl::StrCat(i));
  Map other = std::move(map);
  for (int i = 0; i < 5000; ++i) other.Erase(*other.Find(absl::StrCat(i)));
  EXPECT_EQ(other.Find("first"), &first);
  EXPECT_EQ(other.size(), 1u);
}

}  // namespace
}  // namespace hlaunch
