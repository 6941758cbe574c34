// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/published.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hlaunch {
namespace {

// A text under `key`. If `text` is null, a number, which is refused.
pmix_info_t Info(const char* key, const char* text) {
  pmix_info_t info{};
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = text == nullptr ? PMIX_UINT32 : PMIX_STRING;
  if (text != nullptr) info.value.data.string = const_cast<char*>(text);
  return info;
}

pmix_status_t Publish(Published& published, const std::vector<pmix_info_t>& infos) {
  return published.Publish(pmix_proc_t{}, infos.data(), infos.size());
}

// The text under `key`; empty if there is none.
std::string Find(Published& published, std::string key) {
  std::string found;
  char* keys[] = {key.data(), nullptr};
  published.LookUp(
      pmix_proc_t{}, keys, nullptr, 0,
      [](pmix_status_t, pmix_pdata_t data[], size_t, void* context) {
        *static_cast<std::string*>(context) = data[0].value.data.string;
      },
      &found);
  return found;
}

TEST(Published, TakesAllOrNothing) {
  Published published;
  EXPECT_EQ(Publish(published, {Info("a", "1")}), PMIX_OPERATION_SUCCEEDED);
  EXPECT_EQ(Publish(published, {Info("b", "2"), Info("a", "3")}), PMIX_ERR_DUPLICATE_KEY);
  EXPECT_EQ(Publish(published, {Info("b", "2"), Info("b", "3")}), PMIX_ERR_DUPLICATE_KEY);
  EXPECT_EQ(Publish(published, {Info("b", "2"), Info("c", nullptr)}), PMIX_ERR_NOT_SUPPORTED);
  EXPECT_EQ(Find(published, "a"), "1");
  EXPECT_EQ(Find(published, "b"), "");
  EXPECT_EQ(Publish(published, {Info("b", "4"), Info("c", "5")}), PMIX_OPERATION_SUCCEEDED);
  EXPECT_EQ(Find(published, "b"), "4");
  EXPECT_EQ(Find(published, "c"), "5");
}

}  // namespace
}  // namespace hlaunch
