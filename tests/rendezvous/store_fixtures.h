// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "proto/base/clock.h"

namespace hlaunch {

// The instant `time` from now.
inline Instant In(Duration time) { return MonotonicClock().Now() + time; }

// A new folder for file stores, which the destructor removes with its content. Not copyable.
struct StoreFolder {
  StoreFolder() {
    std::string name = testing::TempDir() + "/file_store_XXXXXX";
    path = ::mkdtemp(name.data());
  }
  StoreFolder(const StoreFolder&) = delete;
  StoreFolder& operator=(const StoreFolder&) = delete;
  ~StoreFolder() { std::filesystem::remove_all(path); }

  std::string path;
};

}  // namespace hlaunch
