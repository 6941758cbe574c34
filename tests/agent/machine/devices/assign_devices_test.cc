// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/machine/devices/assign_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Env = std::vector<std::string>;

std::vector<Device> Some(DeviceKind kind, const std::vector<int>& ids, int parts = 1) {
  std::vector<Device> devices;
  for (const int id : ids) {
    Device device;
    device.kind = kind;
    device.id = id;
    device.index = id;
    device.model = "M";
    device.uuid = absl::StrCat("GPU-", id, "a");
    device.node_path = absl::StrCat("/dev/d", id);
    device.parts = parts;
    devices.push_back(device);
  }
  return devices;
}

DeviceRequest Request(int workers) {
  DeviceRequest request;
  request.workers = workers;
  return request;
}

DeviceRequest Asked(int workers, const std::string& word, const std::string& ids = "") {
  DeviceRequest request = Request(workers);
  request.kinds = KindsOfWord(word);
  if (!ids.empty()) request.ids = ParseIds(ids);
  return request;
}

// The environment of worker `rank`, reduced to the names that the plan sets or that it inherits.
EnvMap WorkerSees(const DevicePlan& plan, size_t rank, const Env& inherited) {
  EnvMap env = ToEnvMap(inherited);
  for (const EnvChange& change : plan.workers[rank].env) {
    if (change.is_default && env.contains(change.name)) continue;
    env.erase(change.name);
    if (change.value) env[change.name] = *change.value;
  }
  return env;
}

// One line for each worker, such as "A=1 B=2", sorted by name.
Env Seen(const DeviceRequest& request, const std::vector<Device>& devices,
         const Env& inherited = {}) {
  const auto plan = AssignDevices(request, devices, ToEnvMap(inherited));
  if (!plan.ok()) return {std::string(plan.status().message())};
  Env lines;
  for (size_t i = 0; i < plan->workers.size(); ++i) {
    lines.push_back(absl::StrJoin(WorkerSees(*plan, i, inherited), " ", absl::PairFormatter("=")));
  }
  return lines;
}

absl::Status Refusal(const DeviceRequest& request, const std::vector<Device>& devices,
                     const Env& inherited = {}) {
  return AssignDevices(request, devices, ToEnvMap(inherited)).status();
}

const std::vector<Device> kEightCards = Some(DeviceKind::kHpu, {0, 1, 2, 3, 4, 5, 6, 7});

void Hold(Device& device) { device.holders = {{77, "python3"}}; }

TEST(Gaudi, GivesEachWorkerItsModuleAndAllOfThemTheSameList) {
  const Env seen = Seen(Request(8), kEightCards);
  ASSERT_THAT(seen, SizeIs(8));
  EXPECT_EQ(seen[0], "HABANA_VISIBLE_MODULES=0,1,2,3,4,5,6,7 HLS_MODULE_ID=0");
  EXPECT_EQ(seen[7], "HABANA_VISIBLE_MODULES=0,1,2,3,4,5,6,7 HLS_MODULE_ID=7");
}

TEST(Gaudi, FollowsSparseModuleIds) {
  EXPECT_THAT(Seen(Request(4), Some(DeviceKind::kHpu, {0, 3, 6, 7})),
              ElementsAre("HABANA_VISIBLE_MODULES=0,3,6,7 HLS_MODULE_ID=0",
                          "HABANA_VISIBLE_MODULES=0,3,6,7 HLS_MODULE_ID=3",
                          "HABANA_VISIBLE_MODULES=0,3,6,7 HLS_MODULE_ID=6",
                          "HABANA_VISIBLE_MODULES=0,3,6,7 HLS_MODULE_ID=7"));
}

TEST(Gaudi, KeepsTheOrderOfAnInheritedList) {
  EXPECT_THAT(Seen(Request(2), kEightCards, {"HABANA_VISIBLE_MODULES=5,4"}),
              ElementsAre("HABANA_VISIBLE_MODULES=5,4 HLS_MODULE_ID=5",
                          "HABANA_VISIBLE_MODULES=5,4 HLS_MODULE_ID=4"));
  EXPECT_EQ(Refusal(Request(2), kEightCards, {"HABANA_VISIBLE_MODULES=5,9"}).message(),
            "HABANA_VISIBLE_MODULES=5,9 names 9; the modules of this node are 0-7");
  EXPECT_THAT(Refusal(Request(2), kEightCards, {"HABANA_VISIBLE_MODULES=5,5"}).message(),
              HasSubstr("names 5 twice"));
}

TEST(Gaudi, NamesTheModuleOfALoneWorkerToo) {
  EXPECT_THAT(Seen(Request(1), kEightCards),
              ElementsAre("HABANA_VISIBLE_MODULES=0 HLS_MODULE_ID=0"));
}

TEST(Gaudi, ListsTheWholeNodeWhereThereAreSeveral) {
  DeviceRequest request = Request(2);
  request.several_nodes = true;
  std::vector<Device> cards = kEightCards;
  Hold(cards[1]);
  EXPECT_THAT(Seen(request, cards),
              ElementsAre("HABANA_VISIBLE_MODULES=2,3,0,1,4,5,6,7 HLS_MODULE_ID=2",
                          "HABANA_VISIBLE_MODULES=2,3,0,1,4,5,6,7 HLS_MODULE_ID=3"));
}

TEST(Gaudi, TakesFreeCardsThatAreWiredToEachOther) {
  std::vector<Device> cards = kEightCards;
  Hold(cards[1]);
  EXPECT_THAT(Seen(Request(1), cards), ElementsAre(HasSubstr("HLS_MODULE_ID=0")));
  EXPECT_THAT(Seen(Request(2), cards),
              ElementsAre(HasSubstr("HLS_MODULE_ID=2"), HasSubstr("HLS_MODULE_ID=3")));
  EXPECT_THAT(Seen(Request(4), cards)[0], HasSubstr("HABANA_VISIBLE_MODULES=4,5,6,7"));
  cards[6].fault = "In reset";
  EXPECT_THAT(Seen(Request(4), cards)[0], HasSubstr("hpu 1 (/dev/d1) is held by python3 (pid 77)"));
}

TEST(Gaudi, RefusesCardsThatAreNotWiredToEachOther) {
  for (const int workers : {3, 5, 6, 7}) {
    EXPECT_EQ(Refusal(Request(workers), kEightCards).code(), absl::StatusCode::kInvalidArgument);
  }
  for (const char* ids : {"1,2", "0,2", "2-5", "0,1,2,4"}) {
    const int count = static_cast<int>(ParseIds(ids)->size());
    EXPECT_THAT(Refusal(Asked(count, "hpu", ids), kEightCards).message(),
                HasSubstr("not wired to each other"))
        << ids;
  }
  for (const char* ids : {"0,1", "3,2", "6-7", "4-7", "0-3", "0-7", "5"}) {
    const int count = static_cast<int>(ParseIds(ids)->size());
    EXPECT_TRUE(Refusal(Asked(count, "hpu", ids), kEightCards).ok()) << ids;
  }
  EXPECT_EQ(Refusal(Asked(2, "hpu", "0,6"), Some(DeviceKind::kHpu, {0, 3, 6, 7})).message(),
            "hpu 0,6 are not wired to each other: Gaudi cards work together as 0-1, 2-3, …, as 0-3 "
            "or 4-7, or all; --oversubscribe starts the workers anyway");
}

TEST(Gaudi, RefusesACardThatIsHeldOrBroken) {
  std::vector<Device> cards = kEightCards;
  Hold(cards[3]);
  const absl::Status held = Refusal(Request(8), cards);
  EXPECT_EQ(held.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(held.message(),
            "hpu 3 (/dev/d3) is held by python3 (pid 77); --oversubscribe starts the workers "
            "anyway, --devices none without devices");
  cards[3].fault = "Needs reset";
  EXPECT_EQ(Refusal(Asked(8, "hpu"), cards).message(),
            "hpu 3 (/dev/d3) is not operational: Needs reset; --oversubscribe starts the workers "
            "anyway");
  DeviceRequest request = Request(8);
  request.oversubscribe = true;
  const auto plan = AssignDevices(request, cards, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->warnings, ElementsAre("hpu 3 (/dev/d3) is not operational: Needs reset"));
  EXPECT_EQ(plan->workers[3].device, &cards[3]);
}

TEST(Gaudi, KeepsToWhatTheContainerWasGiven) {
  EXPECT_THAT(Seen(Request(2), kEightCards, {"HABANA_VISIBLE_DEVICES=4,5"}),
              ElementsAre(HasSubstr("HLS_MODULE_ID=4"), HasSubstr("HLS_MODULE_ID=5")));
  EXPECT_THAT(Seen(Request(8), kEightCards, {"HABANA_VISIBLE_DEVICES=all"}), SizeIs(8));
  // The device nodes are already limited, and the numbers are the host's.
  EXPECT_THAT(Seen(Request(1), Some(DeviceKind::kHpu, {6}), {"HABANA_VISIBLE_DEVICES=3"})[0],
              HasSubstr("HLS_MODULE_ID=6"));
}

TEST(Gaudi, LeavesOneLauncherOfANodeToGiveOutTheCards) {
  DeviceRequest request = Request(1);
  request.starts_others = true;
  request.several_nodes = true;
  EXPECT_THAT(Seen(request, Some(DeviceKind::kHpu, {0, 3, 6, 7})),
              ElementsAre("HABANA_VISIBLE_MODULES=0,3,6,7"));
}

TEST(Gaudi, HasNoListThatTheBridgeWouldRefuse) {
  std::vector<int> ids(16);
  for (int i = 0; i < 16; ++i) ids[static_cast<size_t>(i)] = i;
  const Env seen = Seen(Request(16), Some(DeviceKind::kHpu, ids));
  ASSERT_THAT(seen, SizeIs(16));
  EXPECT_EQ(seen[12], "HLS_MODULE_ID=12");
}

// Applies the rules of the import hook and of set_device in Gaudi's bridge 1.19 to the environment
// of a worker on a node with `cards` cards. Returns its objection; empty if there is none.
std::string BridgeObjects(EnvMap env, int local_rank, int world_size, size_t cards, int expected) {
  std::vector<std::string> list;
  if (env.contains("HABANA_VISIBLE_MODULES")) {
    list = absl::StrSplit(env["HABANA_VISIBLE_MODULES"], ',');
  }
  if (list.size() > 8) return "list too long";
  const bool had_list = !list.empty();
  if (!env.contains("HLS_MODULE_ID") && world_size > 1) {
    if (had_list && list.size() <= static_cast<size_t>(local_rank)) return "list too short";
    env["HLS_MODULE_ID"] =
        had_list ? list[static_cast<size_t>(local_rank)] : absl::StrCat(local_rank);
  }
  if (!env.contains("HLS_MODULE_ID")) return "any card";
  int id = -1;
  if (!absl::SimpleAtoi(env["HLS_MODULE_ID"], &id) || id != expected) return "wrong card";
  // set_device(LOCAL_RANK): the id must be in the list, or below the number of cards.
  if (had_list) {
    const std::string text = absl::StrCat(id);
    if (std::find(list.begin(), list.end(), text) == list.end()) return "not in the list";
    if (world_size > 1 && list.size() <= static_cast<size_t>(local_rank)) return "set_device";
  } else if (static_cast<size_t>(id) >= cards) {
    return "set_device asserts";
  }
  return "";
}

TEST(Gaudi, SatisfiesTheBridgeInEverySituation) {
  const std::vector<std::vector<int>> nodes = {
      {0, 1, 2, 3, 4, 5, 6, 7}, {0, 3, 6, 7}, {7, 0, 3, 6}, {1, 4, 5, 2}, {4, 5, 6, 7}, {5}};
  for (const std::vector<int>& node : nodes) {
    for (const bool several : {false, true}) {
      for (size_t workers : {size_t{1}, node.size()}) {
        DeviceRequest request = Request(static_cast<int>(workers));
        request.several_nodes = several;
        const std::vector<Device> cards = Some(DeviceKind::kHpu, node);
        const auto plan = AssignDevices(request, cards, {});
        ASSERT_TRUE(plan.ok()) << plan.status();
        for (size_t rank = 0; rank < workers; ++rank) {
          const int world_size = static_cast<int>(workers) * (several ? 2 : 1);
          EXPECT_EQ(BridgeObjects(WorkerSees(*plan, rank, {}), static_cast<int>(rank), world_size,
                                  node.size(), node[rank]),
                    "")
              << absl::StrJoin(node, ",") << " rank " << rank;
        }
      }
    }
  }
}

TEST(Gaudi, TheBridgesRuleSeesWhatIsWrong) {
  EXPECT_EQ(BridgeObjects({}, 1, 4, 4, 3), "wrong card");
  EXPECT_EQ(BridgeObjects({{"HLS_MODULE_ID", "6"}}, 2, 4, 4, 6), "set_device asserts");
  EXPECT_EQ(BridgeObjects({{"HABANA_VISIBLE_MODULES", "6"}}, 2, 4, 4, 6), "list too short");
  EXPECT_EQ(BridgeObjects({{"HABANA_VISIBLE_MODULES", "0,3"}}, 0, 1, 4, 0), "any card");
}

const std::vector<Device> kEightGpus = Some(DeviceKind::kCuda, {0, 1, 2, 3, 4, 5, 6, 7});

TEST(Cuda, SaysTheOrderAndNothingElseWhereNothingIsRestricted) {
  EXPECT_THAT(Seen(Request(2), kEightGpus),
              ElementsAre("CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  EXPECT_THAT(Seen(Request(1), kEightGpus, {"CUDA_DEVICE_ORDER=FASTEST_FIRST"}),
              ElementsAre("CUDA_DEVICE_ORDER=FASTEST_FIRST"));
}

TEST(Cuda, HasOneListForAllWorkersOfTheNode) {
  EXPECT_THAT(Seen(Asked(3, "gpu", "0,2-3"), kEightGpus),
              ElementsAre("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,2,3",
                          "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,2,3",
                          "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0,2,3"));
}

TEST(Cuda, IsolatesOnlyWhereAsked) {
  DeviceRequest request = Request(2);
  request.isolate = true;
  EXPECT_THAT(Seen(request, kEightGpus, {"CUDA_VISIBLE_DEVICES=GPU-6,GPU-3"}),
              ElementsAre("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=GPU-6",
                          "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=GPU-3"));
}

// The GPU on which `reader` would compute, given a worker's list. accelerate takes LOCAL_RANK
// modulo the GPUs it sees; DeepSpeed's set_device and JAX's local_device_ids take LOCAL_RANK
// itself.
std::string GpuOf(const std::string& reader, const EnvMap& env, int local_rank) {
  const auto list = env.find("CUDA_VISIBLE_DEVICES");
  const std::vector<std::string> seen =
      absl::StrSplit(list == env.end() ? "0,1,2,3,4,5,6,7" : list->second, ',');
  const auto index = static_cast<size_t>(local_rank);
  if (reader == "accelerate") return seen[index % seen.size()];
  return index < seen.size() ? seen[index] : "none";
}

TEST(Cuda, SatisfiesTheRulesOfAccelerateDeepSpeedAndJax) {
  struct Row {
    const char* ids;
    const char* inherited;
    bool isolate;
    bool virtual_rank;
    std::vector<std::string> gpus;  // The GPUs of local ranks 0, 1, 2.
  };
  const Row rows[] = {
      {"", "", false, false, {"0", "1", "2"}},
      {"5,1,6", "", false, false, {"5", "1", "6"}},
      {"", "7,3,2,0", false, false, {"7", "3", "2"}},
      {"3,7,2", "7,3,2,0", false, false, {"3", "7", "2"}},
      {"5,1,6", "", true, false, {"5", "1", "6"}},
      {"5,1,6", "", false, true, {"5", "1", "6"}},
  };
  for (const Row& row : rows) {
    DeviceRequest request = Asked(3, "gpu", row.ids);
    request.isolate = row.isolate;
    request.virtual_local_rank = row.virtual_rank;
    Env inherited;
    if (row.inherited[0] != '\0') {
      inherited = {absl::StrCat("CUDA_VISIBLE_DEVICES=", row.inherited),
                   "CUDA_DEVICE_ORDER=PCI_BUS_ID"};
    }
    const auto plan = AssignDevices(request, kEightGpus, ToEnvMap(inherited));
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (size_t i = 0; i < 3; ++i) {
      const EnvMap env = WorkerSees(*plan, i, inherited);
      const int local_rank = row.virtual_rank ? 0 : static_cast<int>(i);
      EXPECT_EQ(absl::StrCat(plan->workers[i].device->id), row.gpus[i]);
      EXPECT_EQ(GpuOf("accelerate", env, local_rank), row.gpus[i]) << row.ids << row.inherited;
      if (row.isolate) continue;  // With one GPU and LOCAL_RANK 1, only accelerate works.
      EXPECT_EQ(GpuOf("deepspeed", env, local_rank), row.gpus[i]) << row.ids << row.inherited;
      EXPECT_EQ(GpuOf("jax", env, local_rank), row.gpus[i]) << row.ids << row.inherited;
    }
  }
}

TEST(Cuda, LeavesAnInheritedListAsItIs) {
  EXPECT_THAT(Seen(Request(1), kEightGpus, {"CUDA_VISIBLE_DEVICES=GPU-6a, GPU-1a"})[0],
              HasSubstr("CUDA_VISIBLE_DEVICES=GPU-6a, GPU-1a"));
  const std::vector<Device> gpus = kEightGpus;
  const auto plan = AssignDevices(Request(2), gpus, {{"CUDA_VISIBLE_DEVICES", "GPU-6a,GPU-1a"}});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->workers[0].device, &gpus[6]);
  EXPECT_EQ(plan->workers[1].device, &gpus[1]);
}

TEST(Cuda, StopsTheListAtWhatIsNoDevice) {
  const auto count = [](const char* list) {
    return CountDevices(Request(0), kEightGpus, {{"CUDA_VISIBLE_DEVICES", list}});
  };
  EXPECT_EQ(*count("1,2,9,3"), 2);
  EXPECT_EQ(*count("1,-1,3"), 1);
  EXPECT_EQ(*count("GPU-2a,MIG-x"), 1);
  EXPECT_EQ(*count("1,GPU-9a,3"), 1);
  EXPECT_EQ(*count("1,G,3"), 1);
  EXPECT_EQ(*count("1,2,1"), 0);
  const EnvMap env = {{"CUDA_VISIBLE_DEVICES", "1,9"}};
  EXPECT_THAT(AssignDevices(Request(1), kEightGpus, env)->warnings,
              ElementsAre("CUDA_VISIBLE_DEVICES=1,9 names 9, and this node has 0-7; programs see "
                          "what stands before it"));
}

TEST(Cuda, ReadsAListAsItsFirstNameIsSpelt) {
  const auto count = [](const char* list) {
    return *CountDevices(Request(0), kEightGpus, {{"CUDA_VISIBLE_DEVICES", list}});
  };
  const auto refusal = [](const char* list) {
    const auto asked = CountDevices(Asked(0, "gpu"), kEightGpus, {{"CUDA_VISIBLE_DEVICES", list}});
    return std::string(asked.status().message());
  };
  const struct {
    const char* list;
    int seen;
    const char* says;
  } rows[] = {
      {",0,1", 0, "has a comma without a device before 0"},
      {"0,,1", 1, "has a comma without a device before 1"},
      {"0, ,1", 1, "has a comma without a device before 1"},
      {"0,1,", 2, ""},
      {"0,GPU-1a", 1, "names 0 and GPU-1a, which are of different kinds"},
      {"GPU-1a,0", 1, "names GPU-1a and 0, which are of different kinds"},
      {"0,MIG-x", 1, "names 0 and MIG-x"},
      {"MIG-x,0", 1, "names MIG-x and 0"},
      {"MIG-x,MIG-y", 2, ""},
      {"GPU-1a,GPU-2a", 2, ""},
      {"1,GPU-1a", 0, "names GPU-1a twice"},
      {"GPU-1a,1", 0, "names 1 twice"},
      {"0-1", 0,
       "names 0-1, and this node has 0-7; programs see what stands before it; write 0,1;"},
      {"0,2-3", 1, "names 2-3,"},
      {"all", 0, "names all,"},
      {"0,-1,1", 1, ""},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(count(row.list), row.seen) << row.list;
    EXPECT_THAT(refusal(row.list), HasSubstr(row.says)) << row.list;
    EXPECT_EQ(refusal(row.list).empty(), *row.says == '\0') << row.list;
  }
}

TEST(Cuda, RefusesAListThatNamesOtherDevicesWhereDevicesAreAskedFor) {
  const auto refusal = [](const char* list) {
    const auto count = CountDevices(Asked(0, "gpu"), kEightGpus, {{"CUDA_VISIBLE_DEVICES", list}});
    return std::string(count.status().message());
  };
  EXPECT_EQ(refusal("0,9"),
            "CUDA_VISIBLE_DEVICES=0,9 names 9, and this node has 0-7; programs see what stands "
            "before it; correct the list or unset it");
  EXPECT_THAT(refusal("GPU-9a"), HasSubstr("names GPU-9a"));
  EXPECT_THAT(refusal("0,1,0"), HasSubstr("names 0 twice, and CUDA shows no device then"));
  EXPECT_THAT(refusal("1,01"), HasSubstr("names 01 twice, and CUDA shows no device then"));
  for (const char* none : {"-1", ""}) {
    EXPECT_THAT(refusal(none), HasSubstr("CUDA_VISIBLE_DEVICES names none")) << none;
  }
}

TEST(Cuda, DoesNotReorderAListThatWasWrittenForAnotherOrder) {
  std::vector<Device> gpus = kEightGpus;
  gpus[7].model = "fast";
  const std::vector<EnvChange> none =
      AssignDevices(Request(1), gpus, {{"CUDA_VISIBLE_DEVICES", "0"}})->workers[0].env;
  EXPECT_THAT(none, IsEmpty());
  EXPECT_EQ(AssignDevices(Request(1), gpus, {{"CUDA_VISIBLE_DEVICES", "0"}})->workers[0].device,
            nullptr);
  EXPECT_EQ(AssignDevices(Request(1), gpus, {})->workers[0].device, &gpus[0]);
}

TEST(Cuda, ShowsEachWorkerOneInstanceOfASplitGpu) {
  std::vector<Device> gpus = Some(DeviceKind::kCuda, {0});
  gpus[0].mig = {"1/0", "2/0"};
  EXPECT_THAT(Seen(Request(2), gpus, {"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b"}),
              ElementsAre("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=MIG-a",
                          "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=MIG-b"));
  EXPECT_THAT(Seen(Request(2), gpus), ElementsAre("", ""));
  EXPECT_THAT(Refusal(Asked(2, "gpu"), gpus).message(), HasSubstr("nvidia-smi -L"));
}

TEST(Cuda, AnotherProcessOnAGpuIsNoObstacle) {
  std::vector<Device> gpus = kEightGpus;
  Hold(gpus[0]);  // nvidia-persistenced keeps all of them open.
  EXPECT_TRUE(Refusal(Asked(8, "gpu"), gpus).ok());
  gpus[1].fault = "no permission to open /dev/d1";
  EXPECT_EQ(Refusal(Asked(8, "gpu"), gpus).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(AssignDevices(Request(8), gpus, {})->warnings, SizeIs(1));
}

TEST(Rocm, NamesDevicesInOneLayerOnly) {
  const std::vector<Device> gpus = Some(DeviceKind::kRocm, {0, 1, 2, 3});
  EXPECT_THAT(Seen(Request(1), gpus), ElementsAre(""));
  EXPECT_THAT(Seen(Asked(2, "gpu", "2-3"), gpus)[0], "HIP_VISIBLE_DEVICES=2,3");
  DeviceRequest isolate = Request(2);
  isolate.isolate = true;
  EXPECT_THAT(Seen(isolate, gpus, {"ROCR_VISIBLE_DEVICES=3,1"}),
              ElementsAre("ROCR_VISIBLE_DEVICES=3", "ROCR_VISIBLE_DEVICES=1"));
  EXPECT_THAT(Seen(isolate, gpus, {"CUDA_VISIBLE_DEVICES=3,1"}),
              ElementsAre("HIP_VISIBLE_DEVICES=3", "HIP_VISIBLE_DEVICES=1"));
  // HIP's numbers count the devices that ROCR left.
  EXPECT_THAT(
      Seen(Request(2), gpus, {"ROCR_VISIBLE_DEVICES=GPU-3a,2,1", "HIP_VISIBLE_DEVICES=2,0"}),
      ElementsAre("HIP_VISIBLE_DEVICES=1,3", "HIP_VISIBLE_DEVICES=1,3"));
}

TEST(Xpu, TellsOneCclWhoStartedIt) {
  const std::vector<Device> gpus = Some(DeviceKind::kXpu, {0, 1}, 2);
  EXPECT_THAT(Seen(Request(1), gpus), ElementsAre("CCL_PROCESS_LAUNCHER=torchrun"));
  EXPECT_THAT(Seen(Request(1), gpus, {"CCL_PROCESS_LAUNCHER=pmix"}),
              ElementsAre("CCL_PROCESS_LAUNCHER=pmix"));
  DeviceRequest request = Request(2);
  request.virtual_local_rank = true;
  EXPECT_EQ(Seen(request, gpus)[1],
            "CCL_LOCAL_RANK=1 CCL_LOCAL_SIZE=2 CCL_PROCESS_LAUNCHER=none ZE_AFFINITY_MASK=1");
}

TEST(Xpu, CountsTilesAsTheHierarchySays) {
  const std::vector<Device> gpus = Some(DeviceKind::kXpu, {0, 1}, 2);
  EXPECT_EQ(*CountDevices(Asked(0, "xpu"), gpus, {}), 4);
  EXPECT_EQ(*CountDevices(Asked(0, "xpu"), gpus, {{"ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE"}}), 2);
  EXPECT_THAT(Seen(Asked(1, "xpu", "3"), gpus)[0], HasSubstr("ZE_AFFINITY_MASK=3"));
  EXPECT_THAT(
      Refusal(Asked(1, "xpu", "3"), gpus, {"ONEAPI_DEVICE_SELECTOR=level_zero:0"}).message(),
      HasSubstr("ONEAPI_DEVICE_SELECTOR"));
  EXPECT_THAT(Seen(Request(1), gpus, {"ONEAPI_DEVICE_SELECTOR=level_zero:0"})[0],
              HasSubstr("CCL_PROCESS_LAUNCHER=torchrun"));
}

TEST(Ascend, NamesChipsInAscendingOrder) {
  const std::vector<Device> chips = Some(DeviceKind::kAscend, {0, 1, 2, 3});
  EXPECT_THAT(Seen(Asked(2, "npu", "3,1"), chips),
              ElementsAre("ASCEND_RT_VISIBLE_DEVICES=1,3", "ASCEND_RT_VISIBLE_DEVICES=1,3"));
  EXPECT_THAT(Seen(Request(2), chips), ElementsAre("", ""));
}

TEST(Neuron, GivesOutCores) {
  const std::vector<Device> devices = Some(DeviceKind::kNeuron, {0, 2}, 2);
  EXPECT_EQ(*CountDevices(Asked(0, "neuron"), devices, {}), 4);
  EXPECT_THAT(Seen(Request(4), devices), ElementsAre("", "", "", ""));
  DeviceRequest isolate = Request(4);
  isolate.isolate = true;
  EXPECT_EQ(Seen(isolate, devices)[3], "NEURON_RT_VISIBLE_CORES=5");
  EXPECT_EQ(Seen(isolate, devices, {"NEURON_RT_VISIBLE_CORES=0-1,4"})[0],
            "NEURON_RT_VISIBLE_CORES=0-1,4");
}

TEST(Tpu, DescribesThePartOfAHost) {
  const std::vector<Device> chips = Some(DeviceKind::kTpu, {0, 1, 2, 3});
  EXPECT_EQ(Seen(Asked(1, "tpu", "2"), chips)[0],
            "TPU_CHIPS_PER_HOST_BOUNDS=1,1,1 TPU_HOST_BOUNDS=1,1,1 TPU_VISIBLE_CHIPS=2");
  EXPECT_EQ(Seen(Asked(2, "tpu", "2-3"), chips)[0],
            "TPU_CHIPS_PER_HOST_BOUNDS=1,2,1 TPU_HOST_BOUNDS=1,1,1 TPU_VISIBLE_CHIPS=2,3");
  EXPECT_EQ(Seen(Asked(4, "tpu", "0-3"), chips)[0], "");
  EXPECT_THAT(Refusal(Asked(3, "tpu", "0-2"), chips).message(), HasSubstr("1 or 2 chips"));
}

TEST(Tpu, TakesChipsThatNobodyHolds) {
  std::vector<Device> chips = Some(DeviceKind::kTpu, {0, 1, 2, 3});
  Hold(chips[0]);
  Hold(chips[2]);
  EXPECT_THAT(Seen(Request(1), chips)[0], HasSubstr("TPU_VISIBLE_CHIPS=1"));
  EXPECT_THAT(Seen(Request(2), chips)[0], HasSubstr("TPU_VISIBLE_CHIPS=1,3"));
  for (const int workers : {3, 4}) {
    EXPECT_THAT(Refusal(Request(workers), chips).message(), HasSubstr("tpu 0 (/dev/d0) is held"));
  }
}

TEST(AssignDevices, LeavesJobsAloneThatDidNotAskAndDoNotFit) {
  EXPECT_THAT(Seen(Request(9), kEightGpus), ElementsAre("", "", "", "", "", "", "", "", ""));
  const auto plan = AssignDevices(Request(9), kEightCards, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->warnings, ElementsAre("no devices are assigned: 9 workers and 8 hpu"));
  EXPECT_EQ(AssignDevices(Request(3), {}, {})->why, "no accelerators here");
  EXPECT_THAT(AssignDevices(Request(3), {}, {})->warnings, IsEmpty());
}

TEST(AssignDevices, TellsOfAListOfDevicesWhereThereAreNone) {
  EXPECT_THAT(AssignDevices(Request(3), {}, {{"CUDA_VISIBLE_DEVICES", "0,1"}})->warnings,
              ElementsAre("CUDA_VISIBLE_DEVICES=0,1 names devices, and there is none here: the "
                          "workers get no device; see hlaunch devices"));
  for (const char* none : {"", "-1", "none"}) {
    EXPECT_THAT(AssignDevices(Request(3), {}, {{"CUDA_VISIBLE_DEVICES", none}})->warnings,
                IsEmpty());
  }
}

TEST(AssignDevices, RefusesMoreWorkersThanTheDevicesAskedFor) {
  const absl::Status status = Refusal(Asked(4, "gpu", "0-2"), kEightGpus);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "4 workers and only cuda 0-2; --oversubscribe starts the workers anyway");
  DeviceRequest request = Asked(4, "gpu", "0-2");
  request.oversubscribe = true;
  request.isolate = true;
  EXPECT_THAT(Seen(request, kEightGpus)[3], HasSubstr("CUDA_VISIBLE_DEVICES=0"));
}

TEST(AssignDevices, NamesWhatIsNotThere) {
  EXPECT_EQ(Refusal(Asked(1, "gpu", "1,9"), kEightGpus).message(),
            "--devices names cuda 9; this node has cuda 0-7");
  EXPECT_EQ(Refusal(Asked(1, "gpu", "3"), kEightGpus, {"CUDA_VISIBLE_DEVICES=1"}).message(),
            "--devices names cuda 3; this node has cuda 1 by CUDA_VISIBLE_DEVICES");
  EXPECT_EQ(Refusal(Asked(1, "hpu"), kEightGpus).message(),
            "this node has no hpu device that workers can use; see hlaunch devices");
  std::vector<Device> absent = Some(DeviceKind::kHpu, {-1});
  absent[0].fault = "not here: there is no /dev/accel/accel0";
  EXPECT_THAT(Refusal(Asked(1, "hpu"), absent).message(),
              HasSubstr("there is no /dev/accel/accel0"));
}

TEST(AssignDevices, DoesNothingWhereNoDevicesAreWanted) {
  DeviceRequest request = Request(2);
  request.none = true;
  std::vector<Device> cards = kEightCards;
  Hold(cards[0]);
  EXPECT_THAT(Seen(request, cards, {"HABANA_VISIBLE_MODULES=9"}),
              ElementsAre("HABANA_VISIBLE_MODULES=9", "HABANA_VISIBLE_MODULES=9"));
}

TEST(AssignDevices, PrefersTheAcceleratorToTheGraphics) {
  std::vector<Device> devices = Some(DeviceKind::kXpu, {0});
  for (const Device& gpu : kEightGpus) devices.push_back(gpu);
  const auto plan = AssignDevices(Request(1), devices, {});
  EXPECT_EQ(plan->why, "local ranks 0-0 get cuda 0 in this order");
  EXPECT_EQ(*CountDevices(Request(0), devices, {}), 8);
  EXPECT_EQ(*CountDevices(Asked(0, "xpu"), devices, {}), 1);
}

TEST(ParseIds, ReadsNumbersAndRanges) {
  EXPECT_THAT(*ParseIds("0,2-3,12"), ElementsAre(0, 2, 3, 12));
  EXPECT_EQ(FormatIds({0, 2, 3, 12}), "0,2-3,12");
  EXPECT_EQ(FormatIds({3, 2, 1}), "3,2,1");
  for (const char* wrong : {"", ",", "a", "1,", "3-1", "1-2-3", "-1", "0-99999", "1 2", "1-"}) {
    EXPECT_FALSE(ParseIds(wrong).has_value()) << wrong;
  }
}

TEST(KindsOfWord, KnowsTheWordsOfTorchrunAndItsOwn) {
  EXPECT_THAT(KindsOfWord("gpu"), ElementsAre(DeviceKind::kCuda, DeviceKind::kRocm));
  EXPECT_THAT(KindsOfWord("hpu"), ElementsAre(DeviceKind::kHpu));
  EXPECT_THAT(KindsOfWord("npu"), ElementsAre(DeviceKind::kAscend));
  EXPECT_THAT(KindsOfWord("cpu"), IsEmpty());
  EXPECT_THAT(KindsOfWord("auto"), IsEmpty());
}

}  // namespace
}  // namespace hlaunch
