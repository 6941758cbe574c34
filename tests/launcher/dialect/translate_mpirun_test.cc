// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/dialect/translate_mpirun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/dialect/mpirun_words.h"
#include "launcher/options/option_table.h"
#include "launcher/options/parse_options.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Split(const std::string& line) {
  return absl::StrSplit(line, ' ', absl::SkipEmpty());
}

// What a line of mpirun becomes, without what every line has; or the error.
std::string Became(const std::string& line, const Environment& environment = Environment()) {
  const auto translated = TranslateMpirun(Split(line), environment);
  if (!translated.ok()) return std::string(translated.status().message());
  std::string words = absl::StrJoin(translated->words, " ");
  const std::string always =
      "hlaunch --no-python --oversubscribe --console=all --stdin=0 --quiet "
      "--log-prefix=none ";
  return absl::StartsWith(words, always) ? words.substr(always.size()) : words;
}

std::string Within(const std::string& line) {
  const auto translated = TranslateWithin(Split(line));
  return translated.ok() ? absl::StrJoin(translated->words, " ")
                         : std::string(translated.status().message());
}

TEST(TranslateMpirun, TakesTheWordsOfOpenMpiAndOfHydra) {
  const struct {
    const char* typed;
    const char* becomes;
  } rows[] = {
      {"-np 4 ./a -n 9", "-n 4 -- ./a -n 9"},
      {"--n=4 a", "-n 4 -- a"},
      {"-c 2 a", "-n 2 -- a"},
      {"a", "--nproc-per-node=cpu -- a"},
      {"-N 2 a", "--nproc-per-node=2 -- a"},
      {"-n 4 -ppn 4 a", "-n 4 -- a"},
      {"-n 4 -ppn 2 -hosts a,b x", "--hosts=a,b -n 4 --nproc-per-node=2 -- x"},
      {"--host a:2 --host b:2 x", "--hosts=a:2,b:2 -- x"},
      {"-f hosts -n 8 x", "--hostfile=hosts -n 8 -- x"},
      {"--hostfile h --host a,b x", "--hostfile=h --include=a,b -- x"},
      {"-host localhost:3 x", "-n 3 -- x"},
      {"-host localhost,localhost x", "-n 2 -- x"},
      {"-n 1 -x A -x B=1 -genv C 2 -genv D=3 -env E 4 x",
       "-x A -x B=1 -x C=2 -x D=3 -x E=4 -n 1 -- x"},
      {"-n 1 -genvlist A,B -genvnone x", "--export=A,B --export=none -n 1 -- x"},
      {"-n 1 -wdir /tmp x", "--wdir=/tmp -n 1 -- x"},
      {"-n 1 --bind-to core x", "-n 1 --bind=core -- x"},
      {"-n 1 -bind-to core:2 x", "-n 1 --bind=core:2 -- x"},
      {"-n 1 --bind-to l3cache:if-supported x", "-n 1 --bind=l3 -- x"},
      {"-n 1 --map-by slot:PE=2 x", "-n 1 --bind=core:2 -- x"},
      {"-n 1 --map-by ppr:2:node:PE=4 --hostfile h x",
       "--hostfile=h -n 1 --nproc-per-node=2 --bind=core:4 -- x"},
      {"-n 1 --map-by :OVERSUBSCRIBE --rank-by core x", "-n 1 -- x"},
      {"-n 1 --oversubscribe --use-hwthread-cpus --allow-run-as-root -q x", "-n 1 -- x"},
      {"-n 1 --output-filename d x", "--log-dir=d --tee=3 -n 1 -- x"},
      {"-n 1 --output-filename d:nocopy x", "--log-dir=d --redirects=3 -n 1 -- x"},
      {"-n 1 --merge-stderr-to-stdout --timestamp-output x",
       "--merge-stderr --timestamp-output -n 1 -- x"},
      {"-n 1 --timeout 5 x", "--timeout=5 -n 1 -- x"},
      {"-n 1 --mca btl tcp,self x", "-x OMPI_MCA_btl=tcp,self -n 1 -- x"},
      {"-n 1 -launcher-exec rsh -launcher ssh x", "--launch-agent=rsh %h -n 1 -- x"},
      {"-n 1 --max-restarts 3 --report r x", "--max-restarts 3 --report r -n 1 -- x"},
      {"-n 1 -- x", "-n 1 -- x"},
  };
  for (const auto& row : rows) EXPECT_EQ(Became(row.typed), row.becomes) << row.typed;
}

TEST(TranslateMpirun, ChoosesWhatEveryLineHas) {
  EXPECT_THAT(Became("-n 2 --tag-output x"),
              HasSubstr("--stdin=0 --quiet --log-prefix=[1,${rank}]<${stream}>: -n 2"));
  EXPECT_THAT(Became("-n 2 -l x"), HasSubstr("--log-prefix=[${rank}]  -n 2"));
  EXPECT_THAT(Became("-n 2 --output tag,timestamp x"),
              AllOf(HasSubstr("<${stream}>"), HasSubstr("--timestamp-output")));
  EXPECT_THAT(Became("-n 2 -v x"), AllOf(HasSubstr("--verbose"), Not(HasSubstr("--quiet"))));
  EXPECT_THAT(Became("-n 2 --report-bindings x"), Not(HasSubstr("--quiet")));
  EXPECT_THAT(Became("-n 2 -s none x"), AllOf(HasSubstr("--stdin=none"), Not(HasSubstr("=0"))));
}

TEST(TranslateMpirun, TakesVariablesOfOtherLaunchers) {
  const Environment environment({"MPIEXEC_TIMEOUT=7", "HYDRA_HOST_FILE=h"});
  EXPECT_EQ(Became("-n 1 x", environment), "--timeout=7 --hostfile=h -n 1 -- x");
  EXPECT_EQ(Became("-n 1 -hosts a --timeout 2 x", environment), "--timeout=2 --hosts=a -n 1 -- x");
}

TEST(TranslateMpirun, SaysWhatChangesNothing) {
  const auto line =
      TranslateMpirun(Split("--mca plm_base_verbose 5 --prefix /opt -n 1 x"), Environment());
  EXPECT_THAT(
      line->remarks,
      ElementsAre("--mca plm_base_verbose is for a part of mpirun that is not here: ignored",
                  "--prefix is for a part of mpirun that is not here: ignored"));
  EXPECT_THAT(TranslateMpirun(Split("--mca pml ucx -n 1 x"), Environment())->remarks, IsEmpty());
}

TEST(TranslateMpirun, RefusesWithTheWayOut) {
  const struct {
    const char* typed;
    const char* says;
  } rows[] = {
      {"-n x a", "-n 'x': expected a number"},
      {"-n", "-n needs a value, N"},
      {"-n 2", "no program given"},
      {"--timeout= x", "--timeout needs a value, S"},
      {"--mca a", "needs a value"},
      {"-n 2 a : -n 1 b", "all ranks of hlaunch run one"},
      {"--rankfile r a", "ranks follow devices"},
      {"--map-by node a", "write ppr:N:node"},
      {"--map-by ppr:2:socket a", "write ppr:N:node, and --bind-to"},
      {"--map-by slot:NOLOCAL a", "'NOLOCAL'"},
      {"--bind-to hwthread a", "never split"},
      {"--bind-to numa:2 a", "write core:N"},
      {"--rank-by span a", "host by host"},
      {"--stdin all a", "expected 0 or none"},
      {"--tag-outputs a", "did you mean --tag-output?"},
      {"--oversubscribe=1 a", "leave out what follows ="},
      {"-launcher slurm a", "--launch-agent"},
  };
  for (const auto& row : rows) {
    const auto line = TranslateMpirun(Split(row.typed), Environment());
    ASSERT_FALSE(line.ok()) << row.typed;
    EXPECT_THAT(std::string(line.status().message()), HasSubstr(row.says)) << row.typed;
  }
}

TEST(TranslateWithin, TakesWhatHlaunchHasNoWordFor) {
  EXPECT_EQ(Within("-n 4 -ppn 2 -host a,b x -ppn 3"),
            "hlaunch -n 4 --hosts=a,b --nproc-per-node=2 x -ppn 3");
  EXPECT_EQ(Within("--nproc-per-node 2 --map-by core:PE=2 t.py"),
            "hlaunch --nproc-per-node 2 --bind=core:2 t.py");
  EXPECT_EQ(Within("-n auto --tag-output x"), "hlaunch -n auto --tag-output x")
      << "its own reader says what is wrong";
  EXPECT_EQ(Within("--oversubscribe -v -q x"), "hlaunch --oversubscribe -v -q x");
  EXPECT_EQ(Within("-genv A 1 -m mod -x B"), "hlaunch -x A=1 -m mod -x B");
  EXPECT_EQ(Within("--help"), "hlaunch --help");
  EXPECT_EQ(Within(""), "hlaunch");
}

TEST(MpirunWords, AreEachOfOneRowAndBecomeOptions) {
  std::set<std::string> seen;
  for (const MpirunWord& word : MpirunWords()) {
    for (const absl::string_view name : absl::StrSplit(word.names, ", ")) {
      EXPECT_TRUE(seen.emplace(name).second) << name;
      EXPECT_EQ(FindMpirunWord(name), &word) << name;
    }
    const bool refused = word.verdict == MpirunVerdict::kRefused;
    EXPECT_EQ(word.option == nullptr && word.take == nullptr, refused) << word.names;
    if (word.option == nullptr) continue;
    EXPECT_NE(FindOption(word.option), nullptr) << word.names;
  }
}

TEST(MpirunWords, AreInTheHelpWithoutMarkdown) {
  const auto line = TranslateMpirun(Split("-n 2 --help"), Environment());
  EXPECT_THAT(*line->text_to_print,
              AllOf(HasSubstr("  --timeout S\n"), Not(HasSubstr("`")), Not(HasSubstr("]("))));
}

// What comes of it is a line that hlaunch takes.
TEST(TranslateMpirun, MakesLinesThatHlaunchReads) {
  const auto line = TranslateMpirun(
      Split(
          "-n 2 --tag-output --timestamp-output --merge-stderr-to-stdout --stdin none --wdir /tmp "
          "--map-by slot:PE=2 --timeout 9 -x A=1 -genvnone --output-filename d ./a -x"),
      Environment());
  std::vector<const char*> words;
  for (const std::string& word : line->words) words.push_back(word.c_str());
  const auto options = ParseOptions(static_cast<int>(words.size()), words.data());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->script.command, ElementsAre("./a", "-x"));
  EXPECT_TRUE(options->script.no_python);
  EXPECT_EQ(options->script.directory, "/tmp");
  EXPECT_EQ(options->nproc, 2);
  EXPECT_EQ(options->binding.cores, 2);
  EXPECT_EQ(options->time_limit, std::chrono::seconds(9));
  EXPECT_EQ(options->worker.stdin_to, StdinTo::kNobody);
  EXPECT_EQ(options->logs.prefix_template, "[1,${rank}]<${stream}>:");
  EXPECT_TRUE(options->logs.timestamps && options->logs.merge_stderr);
  EXPECT_THAT(options->hosts.variables, ElementsAre("A=1"));
  EXPECT_EQ(options->hosts.exported, "none");
}

}  // namespace
}  // namespace hlaunch
