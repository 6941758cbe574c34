// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/node_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/machine/devices/find_devices.h"
#include "launcher/cli/options/parse_options.h"
#include "launcher/job/spec/make_job_spec.h"
#include "launcher/text/exit_codes.h"
#include "proto/contract/exit_code.h"
#include "tests/fakes/machine.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// The job of a host with 6 usable CPUs and the devices of `machine`.
absl::StatusOr<JobSpec> Make(const Machine& machine, std::vector<const char*> words,
                             std::vector<std::string> env = {}) {
  words.insert(words.begin(), {"hlaunch", "--sysroot", machine.root().c_str()});
  words.push_back("x");
  const absl::StatusOr<Options> options =
      ParseOptions(static_cast<int>(words.size()), words.data());
  if (!options.ok()) return options.status();
  HostProbes probes;
  probes.usable_cpus = [] { return 6; };
  probes.count_objects = [](const std::string& object) { return object == "socket" ? 2 : 0; };
  probes.new_job_id = [] { return std::string("id"); };
  probes.make_worker_argv = [](const ScriptRequest& request, const Environment&) {
    return request.command;
  };
  probes.find_devices = [](const std::string& root) { return FindDevices(DeviceFiles(root)); };
  return MakeJobSpec(*options, Environment(std::move(env)), probes);
}

int Nproc(const Machine& machine, const char* word, std::vector<std::string> env = {}) {
  const auto spec = Make(machine, {"--nproc-per-node", word}, std::move(env));
  return spec.ok() ? spec->worker.nproc : -1;
}

TEST(AssignNodeDevices, CountsWhatTheWordNames) {
  Machine machine;
  DescribeGaudi2Server(machine);
  EXPECT_EQ(Nproc(machine, "hpu"), 8);
  EXPECT_EQ(Nproc(machine, "auto"), 8);
  EXPECT_EQ(Nproc(machine, "cpu"), 6);
  EXPECT_EQ(Nproc(machine, "2:socket"), 4);
  EXPECT_EQ(Nproc(machine, "gpu"), -1);
  EXPECT_EQ(Nproc(machine, "5x"), -1);
  EXPECT_EQ(Nproc(machine, "hpu", {"HABANA_VISIBLE_MODULES=4,5,6,7"}), 4);
  EXPECT_EQ(Make(machine, {"--nproc-per-node=hpu", "--devices=6-7"})->worker.nproc, 2);
}

TEST(AssignNodeDevices, CountsCpusWhereThereIsNoDevice) {
  Machine machine;
  EXPECT_EQ(Nproc(machine, "auto"), 6);
  const auto spec = Make(machine, {"--nproc-per-node", "gpu"});
  EXPECT_EQ(spec.status().message(),
            "--nproc-per-node gpu: this node has no cuda or rocm device that workers can use; see "
            "hlaunch devices");
  EXPECT_EQ(ExitCodeOf(FailedStep::kPrepare, spec.status()), kExitUsage);
}

TEST(AssignNodeDevices, PutsTheDevicesIntoTheWorkersEnvironment) {
  Machine machine;
  DescribeGaudi2Server(machine);
  const auto spec = Make(machine, {"--nproc-per-node=8", "--nnodes=2"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_THAT(spec->worker.device_env, SizeIs(8));
  EXPECT_EQ(spec->worker.device_env[3][0].name, "HLS_MODULE_ID");
  EXPECT_EQ(spec->worker.device_env[3][0].value, "3");
  EXPECT_THAT(spec->notes, ElementsAre("local ranks 0-7 get hpu 0-7 in this order"));
  const auto counted = Make(machine, {"--nproc-per-node=hpu"});
  ASSERT_THAT(counted->worker.device_env, SizeIs(8));
  EXPECT_EQ(counted->worker.device_env[3][0].value, "3");
  EXPECT_THAT(Make(machine, {"--nproc-per-node=cpu", "--devices=0-5", "--oversubscribe"})
                  ->worker.device_env[0],
              Not(IsEmpty()));
  EXPECT_THAT(Make(machine, {"--devices=none"})->worker.device_env, ElementsAre(IsEmpty()));
  EXPECT_THAT(Make(machine, {"--nproc-per-node=cpu"})->worker.device_env[0], IsEmpty());
}

TEST(AssignNodeDevices, RemembersWhereDevicesSitAndWhatNobodyUses) {
  Machine machine;
  DescribeH100Server(machine);
  const auto spec = Make(machine, {"--nproc-per-node=2", "--devices=5,1,6"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  ASSERT_THAT(spec->places, SizeIs(3));
  EXPECT_EQ(spec->places[0].name, "cuda 5");
  EXPECT_EQ(spec->places[0].numa_node, 1);
  EXPECT_EQ(spec->places[1].numa_node, 0);
  EXPECT_EQ(spec->places[2].name, "cuda 6");
  EXPECT_FALSE(spec->worker.on_neuron);
  Machine trainium;
  trainium.AddNeuron(0, 2);
  EXPECT_TRUE(Make(trainium, {"--nproc-per-node=2"})->worker.on_neuron);
}

TEST(AssignNodeDevices, SaysWithItsOwnCodeThatADeviceIsHeld) {
  Machine machine;
  DescribeGaudi2Server(machine);
  machine.AddProcess(77, "python3", {"/dev/accel/accel0"});
  const auto spec = Make(machine, {"--nproc-per-node=8"});
  EXPECT_THAT(spec.status().message(), HasSubstr("hpu 5 (/dev/accel/accel0) is held by python3"));
  EXPECT_EQ(ExitCodeOf(FailedStep::kPrepare, spec.status()), kExitNoResources);
  const auto anyway = Make(machine, {"--nproc-per-node=8", "--oversubscribe"});
  ASSERT_TRUE(anyway.ok());
  EXPECT_THAT(anyway->warnings, SizeIs(1));
}

TEST(AssignNodeDevices, LeavesTheCardsToOneWorkerThatStartsTheOthers) {
  Machine machine;
  DescribeGaudi2Server(machine);
  const auto spec = Make(machine, {"--per-node", "--nnodes=2"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->worker.starts_others);
  ASSERT_THAT(spec->worker.device_env, ElementsAre(SizeIs(1)));
  EXPECT_EQ(spec->worker.device_env[0][0].name, "HABANA_VISIBLE_MODULES");
  EXPECT_EQ(spec->worker.device_env[0][0].value, "0,1,2,3,4,5,6,7");
  EXPECT_THAT(Make(machine, {"--per-node", "--nproc-per-node=2"}).status().message(),
              HasSubstr("leave --nproc-per-node out"));
}

TEST(AssignNodeDevices, ReadsTheListOfDevices) {
  Machine machine;
  DescribeH100Server(machine);
  const auto spec = Make(machine, {"--devices=0,2-3", "--nproc-per-node=3"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->worker.device_env[0][0].value, "0,2,3");
  const auto own = Make(machine, {"--devices=2,5", "--nproc-per-node=2", "--isolate-devices"});
  EXPECT_EQ(own->worker.device_env[1][0].value, "5");
  for (const char* wrong : {"", "a", "3-1", "0,", "-1"}) {
    const auto refused = Make(machine, {"--devices", wrong, "--nproc-per-node=1"});
    EXPECT_EQ(ExitCodeOf(FailedStep::kPrepare, refused.status()), kExitUsage) << wrong;
  }
  EXPECT_TRUE(Make(machine, {"--devices=3", "--devices=all", "--nproc-per-node=8"}).ok());
}

}  // namespace
}  // namespace hlaunch
