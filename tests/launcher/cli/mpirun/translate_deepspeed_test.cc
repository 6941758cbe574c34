// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/translate_deepspeed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/parse_options.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<std::string> ReadHostsAndVariables(const std::string& path) {
  if (path == "hosts") return "a slots=4\nb slots=2\nc slots=2\n";
  if (path == "twice") return "# a\na slots=4\nb\n a slots=2  # again\n";
  if (path == "/home/u/.deepspeed_env") return "NCCL_DEBUG=INFO\n# no\nX=a b\n";
  return absl::InvalidArgumentError(path + ": no such file");
}

absl::StatusOr<TranslatedLine> Deepspeed(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  return TranslateDeepspeed(words, Environment({"HOME=/home/u"}), "/here", ReadHostsAndVariables);
}

std::string DeepspeedWords(const std::string& line) {
  const auto translated = Deepspeed(line);
  if (!translated.ok()) return std::string(translated.status().message());
  std::vector<const char*> argv;
  for (const std::string& word : translated->words) argv.push_back(word.c_str());
  const auto options = ParseOptions(static_cast<int>(argv.size()), argv.data(), Environment());
  EXPECT_TRUE(options.ok()) << options.status();
  return absl::StrJoin(translated->words, " ");
}

TEST(IsDeepspeedName, KnowsBothNames) {
  EXPECT_TRUE(IsDeepspeedName("/venv/bin/deepspeed"));
  EXPECT_TRUE(IsDeepspeedName("ds"));
  EXPECT_FALSE(IsDeepspeedName("hlaunch"));
}

TEST(TranslateDeepspeed, RunsOnThisHostWithoutAFile) {
  EXPECT_EQ(DeepspeedWords("--num_gpus 8 train.py --deepspeed ds.json"),
            "hlaunch --pass-local-rank=--local_rank --nnodes=1 --cluster=none "
            "--nproc-per-node=8 -- train.py --deepspeed ds.json");
  EXPECT_EQ(DeepspeedWords("--module --no_local_rank --num_nodes=1 --num_accelerators=2 "
                           "--master_port=2222 -q train"),
            "hlaunch --module --quiet --nnodes=1 --cluster=none --nproc-per-node=2 "
            "--master-port=2222 -- train");
  EXPECT_EQ(DeepspeedWords("--num_gpus -1 --no_local_rank t.py"),
            "hlaunch --nnodes=1 --cluster=none --nproc-per-node=auto -- t.py");
}

TEST(TranslateDeepspeed, TakesDevicesOfThisHost) {
  EXPECT_EQ(DeepspeedWords("--no_local_rank --include localhost:0,2 t.py"),
            "hlaunch --nnodes=1 --cluster=none --devices=0,2 --nproc-per-node=auto -- t.py");
}

TEST(TranslateDeepspeed, StartsTheHostsOfTheFile) {
  EXPECT_EQ(
      DeepspeedWords("-H hosts --num_nodes 2 --no_local_rank --enable_each_rank_log logs t.py"),
      "hlaunch --log-dir=logs --redirects=3 --hostfile=hosts --include=a,b "
      "--export-var=NCCL_DEBUG=INFO --export-var=X=a b --export-var=PYTHONPATH=/here -- "
      "t.py");
  EXPECT_THAT(DeepspeedWords("-H hosts --exclude b --no_local_rank t.py"),
              HasSubstr("--include=a,c --export-var"));
  EXPECT_THAT(DeepspeedWords("-H hosts -i c@a --num_gpus 2 --no_local_rank t.py"),
              HasSubstr("--include=a,c --nproc-per-node=2"));
  const auto line = Deepspeed("-H hosts --ssh_port 3022 --master_port 2 t.py");
  EXPECT_EQ(line->ssh_arguments, "-p 3022");
  EXPECT_THAT(line->remarks,
              ElementsAre("--master_port is not needed: hlaunch starts the hosts itself"));
}

TEST(TranslateDeepspeed, TakesAllHostsOfASlurmJob) {
  const auto in_slurm = [](const char* options) {
    const std::string line = absl::StrCat("--launcher slurm --no_local_rank ", options, " t.py");
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const auto translated =
        TranslateDeepspeed(words, Environment({"SLURM_JOB_ID=17"}), "/here", ReadHostsAndVariables);
    return translated.ok() ? absl::StrJoin(translated->words, " ")
                           : std::string(translated.status().message());
  };
  EXPECT_EQ(in_slurm("--num_gpus 4"), "hlaunch --hosts=allocation --nproc-per-node=4 -- t.py");
  for (const char* option : {"--num_nodes 2", "--include a", "--exclude a"}) {
    EXPECT_THAT(in_slurm(option), HasSubstr("with --launcher slurm: the ranks run on all hosts"));
  }
}

TEST(TranslateDeepspeed, IsOneHostOfSeveralThatAreStartedByHand) {
  EXPECT_EQ(DeepspeedWords("-H hosts --no_ssh --node_rank 1 --no_local_rank t.py"),
            "hlaunch --nnodes=3 --node-rank=1 --master-addr=a --master-port=29500 "
            "--cluster=none --nproc-per-node=2 -- t.py");
  EXPECT_THAT(DeepspeedWords("-H hosts --no_ssh t.py"), HasSubstr("--no_ssh needs --node_rank"));
}

TEST(TranslateDeepspeed, NamesWhatItRefuses) {
  EXPECT_THAT(DeepspeedWords("--autotuning run t.py"), HasSubstr("--autotuning 'run' is refused"));
  EXPECT_THAT(DeepspeedWords("--elastic_training t.py"), HasSubstr("--nnodes MIN:MAX"));
  EXPECT_THAT(DeepspeedWords("--launcher_args=-x t.py"),
              HasSubstr("--launcher_args '-x' is refused"));
  EXPECT_THAT(DeepspeedWords("--num_nodes 2 t.py"), HasSubstr("needs --hostfile"));
  EXPECT_THAT(DeepspeedWords("--num_gpus two t.py"),
              HasSubstr("--num_gpus 'two': expected a number"));
  EXPECT_THAT(DeepspeedWords("-H hosts -i a:0,1 t.py"), HasSubstr("whole hosts"));
  EXPECT_THAT(DeepspeedWords("-H gone t.py"), HasSubstr("no such file"));
  EXPECT_THAT(DeepspeedWords("--bogus t.py"), HasSubstr("--bogus"));
  EXPECT_THAT(DeepspeedWords("--num_gpus 2"), HasSubstr("no script given"));
}

TEST(TranslateDeepspeed, TakesWordsThatItDoesNotNeed) {
  EXPECT_EQ(DeepspeedWords("--force_multi --launcher pdsh --no_ssh_check --save_pid "
                           "--log_level info --no_local_rank --num_gpus 1 t.py"),
            "hlaunch --nnodes=1 --cluster=none --nproc-per-node=1 -- t.py");
}

TEST(TranslateDeepspeed, BindsRanksToTheirShareOfTheCores) {
  EXPECT_EQ(DeepspeedWords("--bind_cores_to_rank --no_local_rank --num_gpus 2 t.py"),
            "hlaunch --bind=core --nnodes=1 --cluster=none --nproc-per-node=2 -- t.py");
}

TEST(TranslateDeepspeed, RefusesAHostThatTheFileNamesTwice) {
  EXPECT_EQ(DeepspeedWords("-H twice t.py"),
            "twice names a twice; write one line with all of its slots");
}

TEST(TranslateDeepspeed, PrintsHelp) {
  EXPECT_THAT(*Deepspeed("--help")->text_to_print, HasSubstr("usage: deepspeed"));
}

TEST(DeepspeedPythonPath, BeginsWithTheDirectory) {
  EXPECT_EQ(DeepspeedPythonPath(Environment({"PYTHONPATH=/a"}), "/here"), "/here:/a");
}

}  // namespace
}  // namespace hlaunch
