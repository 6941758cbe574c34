// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include <stdlib.h>

#include <filesystem>

#include "rendezvous/rpc/journal.h"
#include "tests/rendezvous/memory_keeper.h"
#include "tests/rendezvous/record_keeper_contract.h"

namespace hlaunch {
namespace {

// Converts a pointer to an implementation into one to the interface.
template <typename Keeper>
absl::StatusOr<std::unique_ptr<RecordKeeper>> AsKeeper(
    absl::StatusOr<std::unique_ptr<Keeper>> keeper) {
  if (!keeper.ok()) return keeper.status();
  return std::unique_ptr<RecordKeeper>(std::move(keeper).value());
}

class InMemory final : public KeepingPlace {
 public:
  absl::StatusOr<std::unique_ptr<RecordKeeper>> Lead() override {
    return AsKeeper(MemoryKeeper::Lead(place_));
  }
  bool TakeAway() override {
    place_.TakeAway();
    return true;
  }

 private:
  MemoryPlace place_;
};

class InADirectory final : public KeepingPlace {
 public:
  InADirectory() {
    std::string path = testing::TempDir() + "/hlaunch-keeper-XXXXXX";
    directory_ = ::mkdtemp(path.data());
  }
  ~InADirectory() override { std::filesystem::remove_all(directory_); }

  absl::StatusOr<std::unique_ptr<RecordKeeper>> Lead() override {
    return AsKeeper(Journal::Open({directory_, {}}));
  }
  // Only the end of its process releases the lock.
  bool TakeAway() override { return false; }

 private:
  std::string directory_;
};

template <typename Place>
KeepingPlaceMaker Make(const char* name) {
  return {name, [] { return std::make_unique<Place>(); }};
}

INSTANTIATE_TEST_SUITE_P(Keepers, RecordKeeperContract,
                         testing::Values(Make<InMemory>("memory"), Make<InADirectory>("file")),
                         [](const auto& maker) { return maker.param.name; });

}  // namespace
}  // namespace hlaunch
