// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/translate_mpirun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/mpirun/mpirun_words.h"
#include "launcher/cli/mpirun/rankfile.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/options/parse_options.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Split(const std::string& line) {
  return absl::StrSplit(line, ' ', absl::SkipEmpty());
}

// The variables that -x may name without a value.
const std::vector<std::string> kSetHere = {"A=1", "B=2", "myenv=3"};

// Reads `path`; only these files exist.
absl::StatusOr<std::string> ReadPrograms(const std::string& path) {
  if (path == "programs") {
    return "# two of them\n-n 2 -x A=1 ./a 'x y'\n\n  -n 1 -wdir /tmp ./b\n";
  }
  if (path == "ranks") return "rank 0=localhost slot=1\nrank 1=localhost slot=0:*\n";
  if (path == "ofjob") return "n1\nn3\n";
  if (path == "three") return "a\nb slots=2\nc\n";
  if (path == "/home/u/.openmpi/mca-params.conf") {
    return "# of this user\nplm_rsh_args = -p 3022\n\nbtl = tcp,self\nno parameter\n"
           "hwloc_base_binding_policy=none\n# orte_default_hostfile = no\n";
  }
  if (path == "/opt/mpi/etc/openmpi-mca-params.conf") {
    return "orte_default_hostfile = \"/opt/hosts\"\nhwloc_base_binding_policy = core\n"
           "plm_rsh_agent =\n";
  }
  if (path == "/nodes/etc/openmpi-mca-params.conf") return "rmaps_base_mapping_policy=node\n";
  if (path == "/my/params") return "rmaps_base_no_schedule_local = 1\n";
  return absl::InvalidArgumentError(path + ": no such file");
}

absl::StatusOr<TranslatedLine> Translate(const std::string& line,
                                         const Environment& environment = Environment(kSetHere)) {
  return TranslateMpirun(Split(line), environment, ReadPrograms);
}

// The translation of a command line of mpirun, without the words that every one has; or the error.
std::string Became(const std::string& line,
                   const Environment& environment = Environment(kSetHere)) {
  const auto translated = Translate(line, environment);
  if (!translated.ok()) return std::string(translated.status().message());
  std::string words = absl::StrJoin(translated->words, " ");
  const std::string always =
      "hlaunch --no-python --oversubscribe --console=all --mpi=any --compat=openmpi --stdin=0 "
      "--quiet "
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
      {"-np 4 ./a -n 9", "-np 4 -- ./a -n 9"},
      {"--n=4 a", "--n 4 -- a"},
      {"-c 2 a", "-n 2 -- a"},
      {"a", "--nproc-per-node=cpu -- a"},
      {"-N 2 a", "--nproc-per-node=2 -- a"},
      {"-n 4 -ppn 4 a", "-n 4 -- a"},
      {"-n 3 -N 2 a", "-n 3 --nproc-per-node=2 -- a"},
      {"-n 3 --map-by ppr:2:node a", "-n 3 --nproc-per-node=2 -- a"},
      {"-n 4 -ppn 2 a", "-n 4 -- a"},
      {"-n 4 -ppn 2 -hosts localhost a", "-n 4 -- a"},
      {"-n 4 -ppn 2 -hosts a,b x", "--hosts=a,b -n 4 --nproc-per-node=2 -- x"},
      {"--host a:2 --host b:2 x", "--hosts=a:2,b:2 -- x"},
      {"-f hosts -n 8 x", "--hostfile=hosts -n 8 -- x"},
      {"--hostfile three --host c,a x", "--hosts=c:1,a:1 -- x"},
      {"--hostfile three --host b:2,b:1 x", "-H b:3: it has 2 slots in the hostfile three"},
      {"--hostfile three --host b:2 -n 2 x", "--hosts=b:2 -n 2 -- x"},
      {"--hostfile three --host d x", "-H: d is not in the hostfile three"},
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
      {"--map-by ppr:2:socket x", "--nproc-per-node=2:socket --bind=socket -- x"},
      {"--map-by ppr:1:l3cache --bind-to none x", "--nproc-per-node=1:l3 --bind=none -- x"},
      {"-n 4 --host a,b --map-by ppr:2:package x",
       "--hosts=a,b -n 4 --nproc-per-node=2:socket --bind=socket -- x"},
      {"-n 4 --map-by node --rank-by node x", "-n 4 -- x"},
      {"-n 4 --bind-to numa:1 --rank-by fill x", "-n 4 --bind=numa -- x"},
      {"-n 2 --host a,b -ppn 1 --map-by node x", "--hosts=a,b -n 2 --nproc-per-node=1 -- x"},
      {"-n 2 --host a:2,b:2 --map-by node --rank-by node x",
       "--hosts=a:2,b:2 -n 2 --nproc-per-node=1 -- x"},
      {"-n 3 --hostfile three --map-by node x", "--hostfile=three -n 3 --nproc-per-node=1 -- x"},
      {"-n 1 -host a -bootstrap=ssh -launcher-exec rsh -bootstrap-exec-args -v x",
       "--launch-agent=rsh -v %h --hosts=a -n 1 -- x"},
      {"-n 1 -print-rank-map --mca plm_rsh_args -v x",
       "hlaunch --no-python --oversubscribe --console=all --mpi=any --compat=openmpi --stdin=0 "
       "--log-prefix=none "
       "--verbose -n 1 -- x"},
      {"--rankfile ranks x", "-n 2 --bind=slots:1;0:* -- x"},
      {"-n 2 --rankfile ranks x", "-n 2 --bind=slots:1;0:* -- x"},
      {"-n 1 --map-by :OVERSUBSCRIBE --rank-by core x", "-n 1 -- x"},
      {"-n 1 --oversubscribe --use-hwthread-cpus --allow-run-as-root -q x", "-n 1 -- x"},
      {"-n 1 --output-filename d x", "--log-dir=d --tee=3 -n 1 -- x"},
      {"-n 1 --output-filename d:nocopy x", "--log-dir=d --redirects=3 -n 1 -- x"},
      {"-n 1 --merge-stderr-to-stdout --timestamp-output x",
       "--merge-stderr --timestamp-output -n 1 -- x"},
      {"-n 1 --timeout 5 x", "--timeout=5 -n 1 -- x"},
      {"--stdin all -n 1 x",
       "hlaunch --no-python --oversubscribe --console=all --mpi=any --compat=openmpi --quiet "
       "--log-prefix=none "
       "--stdin=all -n "
       "1 "
       "-- x"},
      {"-n 1 --mca btl tcp,self x", "-x OMPI_MCA_btl=tcp,self -n 1 -- x"},
      {"-n 1 -host a -launcher-exec rsh -launcher ssh x",
       "--launch-agent=rsh %h --hosts=a -n 1 -- x"},
      {"-n 1 -launcher-exec rsh x", "-n 1 -- x"},
      {"-n 1 -host localhost --mca plm_rsh_agent rsh x", "-n 1 -- x"},
      {"-n 1 --max-restarts 3 --report r x", "--max-restarts 3 --report r -n 1 -- x"},
      {"-n 1 -- x", "-n 1 -- x"},
  };
  for (const auto& row : rows) EXPECT_EQ(Became(row.typed), row.becomes) << row.typed;
}

TEST(TranslateMpirun, CountsTheSlotsOfAllEntriesForThisHost) {
  EXPECT_EQ(Became("-H localhost:2,localhost:2 x"), "-n 4 -- x");
  EXPECT_EQ(Became("-H localhost:2,localhost x"), "-n 3 -- x");
  EXPECT_EQ(Became("-H localhost:2 -H 127.0.0.1:3 x"), "-n 5 -- x");
}

TEST(TranslateMpirun, LeavesTheInputOutOfADetachedJob) {
  EXPECT_THAT(Became("-n 1 --detach x"), Not(HasSubstr("--stdin")));
}

TEST(TranslateMpirun, KeepsTheSlotsThatALineCountsOnThisHost) {
  EXPECT_EQ(Became("-H localhost:2,localhost -n 3 x"), "-n 3 -- x");
  EXPECT_EQ(Became("-H localhost:2 -n 3 x"),
            "-n 3: localhost:2 has 2 slots; write --oversubscribe to start more ranks than slots");
  EXPECT_EQ(Became("-H localhost:2 -n 3 --oversubscribe x"), "-n 3 -- x");
  EXPECT_EQ(Became("-hosts localhost:2 -n 3 x"), "-n 3 -- x");  // Hydra goes round.
  EXPECT_EQ(Became("-H localhost -n 3 x"), "-n 3 -- x");        // Nobody has counted.
}

TEST(TranslateMpirun, TakesAValueApartOnlyForANameThatEndsInEnv) {
  EXPECT_EQ(Became("-n 1 --wdir=/opt/env x"), "--wdir=/opt/env -n 1 -- x");
  EXPECT_EQ(Became("-n 1 -x=myenv x"), "-x myenv -n 1 -- x");
  EXPECT_EQ(Became("-n 1 --hostfile=myenv x"), "--hostfile=myenv -n 1 -- x");
}

TEST(TranslateMpirun, ChoosesWhatEveryLineHas) {
  EXPECT_THAT(Became("-n 2 --tag-output x"),
              HasSubstr("--stdin=0 --quiet --log-prefix=[1,${rank}]<${stream}>: -n 2"));
  EXPECT_THAT(Became("-n 2 -l x"), HasSubstr("--log-prefix=[${rank}]  -n 2"));
  EXPECT_THAT(Became("-n 2 --output tag,timestamp x"),
              AllOf(HasSubstr("<${stream}>"), HasSubstr("--timestamp-output")));
  EXPECT_THAT(Became("-n 2 -v x"), AllOf(HasSubstr("--verbose"), Not(HasSubstr("--quiet"))));
  for (const char* what : {"map", "map-devel", "allocation", "alloc:raw"}) {
    const std::string became = Became(absl::StrCat("-n 2 --display ", what, " x"));
    EXPECT_THAT(became, AllOf(HasSubstr("--verbose"), Not(HasSubstr("--report")))) << what;
  }
  EXPECT_THAT(Became("-n 2 --display map,bind x"),
              AllOf(HasSubstr("--verbose"), HasSubstr("--report-bindings")));
  EXPECT_THAT(Became("-n 2 --display topo x"), HasSubstr("expected map, allocation or bindings"));
  EXPECT_THAT(Became("-n 2 --report-bindings x"), Not(HasSubstr("--quiet")));
  EXPECT_THAT(Became("-n 2 -s none x"), AllOf(HasSubstr("--stdin=none"), Not(HasSubstr("=0"))));
}

TEST(TranslateMpirun, TakesVariablesOfOtherLaunchers) {
  const Environment environment({"MPIEXEC_TIMEOUT=7", "HYDRA_HOST_FILE=h"});
  EXPECT_EQ(Became("-n 1 x", environment), "--timeout=7 --hostfile=h -n 1 -- x");
  EXPECT_EQ(Became("-n 1 -hosts a --timeout 2 x", environment), "--timeout=2 --hosts=a -n 1 -- x");
}

TEST(TranslateMpirun, TakesWhatVariablesSayOfHosts) {
  const struct {
    const char* variable;
    const char* typed;
    const char* becomes;
  } rows[] = {
      {"OMPI_MCA_orte_default_hostfile=h", "-n 4 x", "--hostfile=h -n 4 -- x"},
      {"PRTE_MCA_prte_default_hostfile=h", "x", "--hostfile=h -- x"},
      {"I_MPI_HYDRA_HOST_FILE=h", "-n 4 x", "--hostfile=h -n 4 -- x"},
      {"I_MPI_HYDRA_HOST_FILE=h", "-n 4 -host a x", "--hosts=a -n 4 -- x"},
      {"OMPI_MCA_orte_default_dash_host=a,b", "-n 4 x", "--hosts=a,b -n 4 -- x"},
      {"OMPI_MCA_plm_rsh_agent=/k.sh", "-n 4 -host a x",
       "--launch-agent=/k.sh %h --hosts=a -n 4 -- x"},
      {"OMPI_MCA_plm_rsh_agent=ssh : rsh", "-n 4 -host a x", "--hosts=a -n 4 -- x"},
      {"OMPI_MCA_plm_rsh_agent=/k.sh", "-n 4 x", "-n 4 -- x"},
      {"OMPI_MCA_plm_rsh_agent=/k.sh", "-n 4 -host localhost:4 x", "-n 4 -- x"},
      {"OMPI_MCA_plm_rsh_agent=/k.sh", "-n 4 -host a -launcher-exec rsh x",
       "--launch-agent=rsh %h --hosts=a -n 4 -- x"},
      {"HYDRA_LAUNCHER=slurm", "-n 4 x", "-n 4 -- x"},
      {"I_MPI_PERHOST=2", "-n 4 -host a,b x", "--hosts=a,b -n 4 --nproc-per-node=2 -- x"},
      {"I_MPI_PERHOST=all", "-n 4 -host a,b x", "--hosts=a,b -n 4 -- x"},
      {"I_MPI_PERHOST=2", "-n 4 x", "-n 4 -- x"},
      {"I_MPI_PERHOST=2", "-n 4 -N 3 -host a,b x", "--hosts=a,b -n 4 --nproc-per-node=3 -- x"},
      {"OMPI_MCA_mca_base_env_list=A=1;B=2", "-x A=3 -n 1 x", "-x A=1 -x B=2 -x A=3 -n 1 -- x"},
      {"OMPI_MCA_rmaps_base_mapping_policy=ppr:2:node", "-n 4 -host a,b x",
       "--hosts=a,b -n 4 --nproc-per-node=2 -- x"},
      {"OMPI_MCA_hwloc_base_binding_policy=none", "-n 1 x", "-n 1 --bind=none -- x"},
      {"OMPI_MCA_hwloc_base_binding_policy=none", "-n 1 --bind-to core x", "-n 1 --bind=core -- x"},
      {"OMPI_MCA_rmaps_base_mapping_policy=node", "-n 2 -host a,b x",
       "--hosts=a,b -n 2 --nproc-per-node=1 -- x"},
      {"OMPI_MCA_rmaps_base_mapping_policy=node", "-n 4 -host a:2,b:2 --map-by slot x",
       "--hosts=a:2,b:2 -n 4 -- x"},
      {"OMPI_MCA_rmaps_base_ranking_policy=node", "-n 2 -host a:2,b:2 x",
       "OMPI_MCA_rmaps_base_ranking_policy: ranks are numbered host by host; write --map-by "
       "ppr:N:node for the ranks of each host, or leave it out"},
      {"OMPI_MCA_rmaps_base_mapping_policy=node", "-n 4 -host a,b x",
       "OMPI_MCA_rmaps_base_mapping_policy: ranks are numbered host by host; write --map-by "
       "ppr:N:node for the ranks of each host, or leave it out"},
      {"OMPI_MCA_rmaps_base_no_schedule_local=1", "-n 1 x",
       "OMPI_MCA_rmaps_base_no_schedule_local '1': it says where ranks run, and hlaunch has "
       "nothing "
       "of the kind; leave it out, and write --hosts, -N or --bind-to"},
      {"I_MPI_HYDRA_BOOTSTRAP=slurm", "-n 1 -host a x",
       "I_MPI_HYDRA_BOOTSTRAP 'slurm': hosts are reached by ssh; for another way write "
       "--launch-agent 'CMD %h'"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Became(row.typed, Environment({row.variable})), row.becomes) << row.variable;
  }
  EXPECT_EQ(Within("-n 4 --mca orte_default_hostfile h x"), "hlaunch -n 4 --hostfile=h x");
}

TEST(TranslateMpirun, TakesWhatFilesOfOpenMpiSay) {
  const std::string home = "HOME=/home/u", path = "PATH=/usr/bin:/opt/mpi/bin:/my/mpi/bin";
  const auto user = Translate("-n 1 -host a x", Environment({home}));
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ(user->ssh_arguments, "-p 3022");
  EXPECT_EQ(Became("-n 1 -host a x", Environment({home})), "--hosts=a -n 1 --bind=none -- x");
  EXPECT_EQ(Became("-n 1 x", Environment({path})), "--hostfile=/opt/hosts -n 1 --bind=core -- x");
  EXPECT_EQ(Became("-n 1 x", Environment({home, path})),
            "--hostfile=/opt/hosts -n 1 --bind=none -- x")
      << "the user's file is stronger than the site's";
  EXPECT_EQ(Became("-n 1 -host a --bind-to numa x", Environment({home, path})),
            "--hosts=a -n 1 --bind=numa -- x");
  EXPECT_EQ(
      Became("-n 1 -host a x", Environment({path, "OMPI_MCA_hwloc_base_binding_policy=socket"})),
      "--hosts=a -n 1 --bind=socket -- x");
  EXPECT_EQ(Became("-n 1 x", Environment({"OPAL_PREFIX=/opt/mpi"})),
            "--hostfile=/opt/hosts -n 1 --bind=core -- x");
  EXPECT_EQ(Became("-n 4 -host a:2,b:2 x", Environment({"PATH=/nodes/bin"})),
            "/nodes/etc/openmpi-mca-params.conf: rmaps_base_mapping_policy: ranks are numbered "
            "host by host; write --map-by ppr:N:node for the ranks of each host, or leave it out");
  EXPECT_THAT(Became("-n 1 x", Environment({home, "OMPI_MCA_mca_base_param_files=/my/params"})),
              HasSubstr("/my/params: rmaps_base_no_schedule_local '1': it says where ranks run"));
  EXPECT_EQ(Within("-n 1 x"), "hlaunch -n 1 x") << "hlaunch itself reads no file of Open MPI's";
}

TEST(TranslateMpirun, LeavesOutVariablesThatAreNotSet) {
  const auto line = Translate("-n 1 -x A -x NONE -x HLAUNCH_NONE -x C=1 x");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->remarks,
              ElementsAre("-x NONE: it is not set here, so no rank gets it",
                          "-x HLAUNCH_NONE: it is not set here, so no rank gets it"));
  EXPECT_EQ(Became("-n 1 -x A -x NONE -x C=1 x"), "-x A -x C=1 -n 1 -- x");
  EXPECT_EQ(Became("-n 1 -x A x", Environment({"A="})), "-x A -n 1 -- x") << "set, and empty";
  EXPECT_EQ(Became("-n 2 a : -n 1 -x NONE -x B b"), "--also=-n 1 -x B=2 b -n 3 -- a");
  EXPECT_EQ(Became("-n 1 -x ./prog x"), "-x ./prog -n 1 -- x") << "hlaunch says what is wrong";
  EXPECT_EQ(Within("-x NONE x"), "hlaunch -x NONE x");
}

TEST(TranslateMpirun, SaysWhoseWordsItTakes) {
  for (const char* typed : {"--version", "-V"}) {
    const auto line = Translate(typed);
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_THAT(*line->text_to_print,
                AllOf(HasSubstr("hlaunch "), HasSubstr("Open MPI"), HasSubstr("MPICH")));
  }
}

TEST(TranslateMpirun, TakesTheArgumentsOfSsh) {
  const Environment environment({"OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10"});
  EXPECT_EQ(Translate("-host a -n 1 x", environment)->ssh_arguments, "-o ConnectionAttempts=10");
  EXPECT_EQ(Translate("-host a --mca plm_rsh_args -p3022 -n 1 x", environment)->ssh_arguments,
            "-p3022");
  EXPECT_EQ(Became("-host a --mca plm_rsh_args -p3022 --mca plm_rsh_agent /my/ssh -n 1 x"),
            "--launch-agent=/my/ssh -p3022 %h --hosts=a -n 1 -- x");
  EXPECT_EQ(TranslateWithin(Split("--prtemca plm_ssh_args -p3022 x"))->ssh_arguments, "-p3022");
  EXPECT_EQ(Became("--mca mca_base_env_list A=1;B -n 1 x"), "-x A=1 -x B -n 1 -- x");
}

TEST(TakeRankfile, SaysHostsAndSlots) {
  MpirunLine line;
  const absl::Status taken = TakeRankfile(
      "rank 1=a slot=0:1\n# b is bound alike\nrank 0 = a slots=0:0\nrank 2=b slot=0:0\n"
      "rank 3=b slot=0:1 # the last\n",
      "f", line);
  ASSERT_TRUE(taken.ok()) << taken;
  EXPECT_EQ(line.hosts, "a:2,b:2");
  EXPECT_EQ(line.ranks, "4");
  EXPECT_EQ(line.bind, "slots:0:0;0:1");
}

TEST(TakeRankfile, NamesFileAndLine) {
  const struct {
    const char* text;
    const char* says;
  } rows[] = {
      {"", "f: it is empty"},
      {"rank 0=a slot=0\nrank 1=b\n", "f:2: expected rank N=HOST slot=SLOTS"},
      {"rank x=a slot=0\n", "f:1: expected rank N=HOST"},
      {"rank 0=+n0 slot=0\n", "f:1: '+n0': expected a host's name"},
      {"rank 0=a slot=p2\n", "f:1: slot=p2: expected cores"},
      {"rank 0=a slot=0:\n", "f:1: slot=0:: expected cores"},
      {"rank 0=a slot=0\nrank 0=a slot=1\n", "f:2: rank 0 comes again; it is in line 1"},
      {"rank 0=a slot=0\nrank 2=a slot=1\n", "f: rank 1 is missing"},
      {"rank 0=a slot=0\nrank 1=b slot=0\nrank 2=a slot=1\n",
       "f:3: rank 2 is on a once more, behind other hosts"},
      {"rank 0=a slot=0\nrank 1=b slot=1\n", "f: the ranks of b have other slots than those of a"},
  };
  for (const auto& row : rows) {
    MpirunLine line;
    EXPECT_THAT(std::string(TakeRankfile(row.text, "f", line).message()), HasSubstr(row.says));
  }
}

TEST(TranslateMpirun, NumbersTheRanksOfSeveralPrograms) {
  const Environment environment({"B=2", "OMP_A=3", "OMP_B=4"});
  const struct {
    const char* typed;
    const char* becomes;
  } rows[] = {
      {"-n 2 ./a -v : -n 1 ./b -n 9", "--also=-n 1 ./b -n 9 -n 3 -- ./a -v"},
      {"-n 2 ./a : -n 1 -x A=1 -x B ./b : -n 3 -env C 3 -wdir /tmp ./c",
       "--also=-n 1 -x A=1 -x B=2 ./b --also=-n 3 -x C=3 --wdir /tmp ./c -n 6 -- ./a"},
      {"-n 2 -x B ./a : -n 1 ./b", "--also=-n 2 -x B=2 ./a --also=-n 1 ./b -n 3 -- ./a"},
      {"-n 2 -wdir /tmp ./a : -n 1 ./b", "--also=-n 2 --wdir /tmp ./a --also=-n 1 ./b -n 3 -- ./a"},
      {"-n 1 -x OMP_* ./a : -n 1 ./b",
       "--also=-n 1 -x OMP_A=3 -x OMP_B=4 ./a --also=-n 1 ./b -n 2 -- ./a"},
      {"-genv A 1 -n 2 --bind-to core ./a : -n 1 --bind-to core ./b",
       "-x A=1 --also=-n 1 ./b -n 3 --bind=core -- ./a"},
      {"--hostfile f -n 2 ./a : -n 1 ./b", "--also=-n 1 ./b --hostfile=f -n 3 -- ./a"},
      {"--host a,b -n 2 ./a : -n 1 ./b", "--also=-n 1 ./b --hosts=a,b -n 3 -- ./a"},
      {"--host a:2 -n 2 ./a : -n 1 --host a ./b : -n 2 --host b,c ./c",
       "--also=-n 1 ./b --also=-n 2 ./c --hosts=a:3,b:1,c:1 -n 5 -- ./a"},
      {"-n 1 --host localhost ./a : -n 1 --host localhost ./b", "--also=-n 1 ./b -n 2 -- ./a"},
      {"--app programs",
       "--also=-n 2 -x A=1 ./a 'x y' --also=-n 1 --wdir /tmp ./b -n 3 -- ./a x y"},
      {"-l -configfile programs",
       "hlaunch --no-python --oversubscribe --console=all --mpi=any --compat=openmpi --stdin=0 "
       "--quiet "
       "--log-prefix=[${rank}] "
       " "
       "--also=-n 2 -x A=1 ./a 'x y' --also=-n 1 --wdir /tmp ./b -n 3 -- ./a x y"},
  };
  for (const auto& row : rows) EXPECT_EQ(Became(row.typed, environment), row.becomes) << row.typed;
}

// Like Open MPI: without a number, the slots of the allocation count, not the CPUs of this host.
TEST(TranslateMpirun, TakesTheSlotsOfAnAllocation) {
  const Environment slurm({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]"});
  EXPECT_EQ(Became("x", slurm), "--hosts=allocation -- x");
  EXPECT_EQ(Became("-n 3 x", slurm), "-n 3 -- x");
  EXPECT_EQ(Became("-N 3 x", slurm), "--nproc-per-node=3 -- x");
  EXPECT_EQ(Became("-n 4 -N 2 x", slurm), "-n 4 --nproc-per-node=2 -- x");
  EXPECT_EQ(Became("-n 4 -ppn 2 x", slurm), "-n 4 --nproc-per-node=2 -- x");
  EXPECT_EQ(Became("-n 4 -ppn 2 x", Environment({"HLAUNCH_HOSTS=a,b"})),
            "-n 4 --nproc-per-node=2 -- x");
  EXPECT_EQ(Became("-n 4 -H localhost:4 x", slurm), "--nnodes=1 -n 4 -- x");
  EXPECT_EQ(Became("-n 4 -launcher-exec rsh x", slurm), "--launch-agent=rsh %h -n 4 -- x");
  EXPECT_EQ(Became("--cluster none x", slurm), "--cluster none --nproc-per-node=cpu -- x");
  for (const char* first : {"PBS_JOBID=1", "LSB_JOBID=1", "JOB_ID=1"}) {
    const Environment others({first, "PBS_NODEFILE=f", "LSB_MCPU_HOSTS=a 2", "PE_HOSTFILE=f"});
    if (first[0] == 'L') {
      EXPECT_EQ(Became("x", others), "--hosts=allocation -n 2 -- x");
      continue;
    }
    EXPECT_THAT(Became("x", others), HasSubstr("FILE=f: the hosts of ")) << first;
  }
  const Environment tasks(
      {"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_TASKS_PER_NODE=2,1"});
  EXPECT_EQ(Became("x", tasks), "--hosts=allocation -n 3 -- x");
  EXPECT_EQ(Became("-n 2 x", tasks), "-n 2 -- x");
  const Environment shell({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n1", "SLURM_STEP_ID=0",
                           "SLURM_STEP_NUM_TASKS=1", "SLURM_PTY_PORT=5"});
  EXPECT_EQ(Became("x", shell), "--hosts=allocation -- x") << "srun --pty bash";
  const Environment task({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n1", "SLURM_STEP_ID=0"});
  EXPECT_EQ(Became("x", task), "--nproc-per-node=cpu -- x");
  EXPECT_EQ(Became("--nproc-per-node 2 x"), "--nproc-per-node 2 -- x");
}

// Like Open MPI: hosts that a line names are those of the job, and started as the job's are.
TEST(TranslateMpirun, TakesNamedHostsOnlyFromTheAllocation) {
  const Environment slurm(
      {"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=4(x2),2"});
  const std::string srun =
      "--launch-agent=srun -w %h -N1 -n1 --overlap --mem=0 --cpu-bind=none --mpi=none ";
  EXPECT_EQ(Became("-H n2 -n 2 x", slurm), srun + "--hosts=n2 -n 2 -- x");
  EXPECT_EQ(Became("-H n3.cluster,n1 -n 2 x", slurm), srun + "--hosts=n3,n1 -n 2 -- x");
  EXPECT_EQ(Became("-H n1:4,n3:1 x", slurm), srun + "--hosts=n1:4,n3:1 -n 5 -- x");
  EXPECT_EQ(Became("-H n1,n3 -N 2 x", slurm), srun + "--hosts=n1,n3 --nproc-per-node=2 -- x");
  EXPECT_EQ(Became("-hostfile ofjob x", slurm), srun + "--hosts=n1:4,n3:2 -n 6 -- x");
  EXPECT_EQ(Became("-hostfile ofjob -n 4 x", slurm), srun + "--hosts=n1,n3 -n 4 -- x");
  EXPECT_EQ(Became("-H c9 x", slurm),
            "c9 is not in Slurm job 17, whose hosts are n1, n2, n3; leave it out, or write "
            "--launch-agent 'ssh %h' to reach all hosts by ssh");
  EXPECT_THAT(Became("--hostfile three -n 2 x", slurm), HasSubstr("a is not in Slurm job 17"));
  EXPECT_THAT(Became("-H eva@n1 x", slurm), HasSubstr("leave eva@ out"));
  EXPECT_EQ(Became("-H n3:3 x", slurm), "n3:3: it has 2 slots in Slurm job 17");
  EXPECT_THAT(Became("-H n1,n3 -n 6 x", slurm), HasSubstr("n3 has 2 slots in Slurm job 17"));
  EXPECT_EQ(Became("-H c9 --launch-agent rsh -n 1 x", slurm),
            "--launch-agent=rsh %h --hosts=c9 -n 1 -- x");
  EXPECT_EQ(Became("-H localhost -n 1 x", slurm), "--nnodes=1 -n 1 -- x");
  const Environment lsf({"LSB_JOBID=5", "LSB_MCPU_HOSTS=a 2 b 2"});
  EXPECT_EQ(Became("-H b -n 2 x", lsf), "--launch-agent=blaunch %h --hosts=b -n 2 -- x");
  EXPECT_THAT(Became("-H c -n 2 x", lsf), HasSubstr("c is not in LSF job 5"));
  const std::string file = testing::TempDir() + "/hlaunch_pbs_hosts";
  std::ofstream(file) << "a\nb\n";
  const Environment pbs({"PBS_JOBID=9", "PBS_NODEFILE=" + file});
  EXPECT_EQ(Became("-H b -n 2 x", pbs), "--hosts=b -n 2 -- x") << "by ssh";
  EXPECT_THAT(Became("-H c -n 2 x", pbs), HasSubstr("c is not in PBS job 9"));
  std::filesystem::remove(file);
}

// A shell of salloc runs where salloc was typed, which may be no host of the job.
TEST(TranslateMpirun, RefusesThisHostAloneWhereItIsNotInTheJob) {
  const auto on = [](const std::string& host, const char* line, const char* more = "A=1") {
    const Environment environment({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]", more});
    const auto read = [&host](const std::string& path) {
      return path == "/proc/sys/kernel/hostname" ? host + "\n" : ReadPrograms(path);
    };
    const auto translated = TranslateMpirun(Split(line), environment, read);
    return translated.ok() ? absl::StrJoin(translated->words, " ")
                           : std::string(translated.status().message());
  };
  EXPECT_EQ(on("login1", "-H localhost:2 x"),
            "localhost:2 is login1, which is not in Slurm job 17, whose hosts are n1, n2; leave it "
            "out, or write --cluster none to run here, outside of the job");
  EXPECT_THAT(on("login1", "-H login1 x"), HasSubstr("login1 is not in Slurm job 17"));
  EXPECT_THAT(on("login1", "-H n1,localhost x"), HasSubstr("localhost is not in Slurm job 17"));
  EXPECT_THAT(on("login1", "--cluster none -H localhost -n 1 x"), EndsWith("--nnodes=1 -n 1 -- x"));
  EXPECT_THAT(on("n2.site", "-H localhost -n 1 x"), EndsWith("--nnodes=1 -n 1 -- x"));
  EXPECT_THAT(on("elsewhere", "-H localhost -n 1 x", "SLURMD_NODENAME=n1"),
              EndsWith("--nnodes=1 -n 1 -- x"));
  EXPECT_THAT(on("n2.site", "-H n1,localhost -n 2 x"), HasSubstr(" --hosts=n1,n2 -n 2 -- x"));
}

// Like Open MPI. Two processes that start two ranks each were one job of two.
TEST(TranslateMpirun, IsRefusedInSeveralProcessesOfAnotherMpirun) {
  const auto within = [](const char* size, const char* line = "-n 2 x") {
    return Became(line, Environment({absl::StrCat("OMPI_COMM_WORLD_SIZE=", size),
                                     "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                                     absl::StrCat("OMPI_COMM_WORLD_LOCAL_SIZE=", size),
                                     "PMIX_NAMESPACE=prterun-n1-7@1"}));
  };
  EXPECT_THAT(within("2"), HasSubstr("this mpirun runs in several processes of another one (one "
                                     "process of 2 of Open MPI (OMPI_COMM_WORLD_SIZE))"));
  EXPECT_THAT(within("2", "-H a,b x"), HasSubstr("leave one of the two out"));
  EXPECT_EQ(within("1"), "-n 2 -- x");
  EXPECT_EQ(within("2", "--standalone -n 2 x"), "--standalone -n 2 -- x");
  const std::vector<std::string> hydra = {"PMI_SIZE=2", "PMI_RANK=0", "MPI_LOCALNRANKS=2",
                                          "MPI_LOCALRANKID=0"};
  EXPECT_THAT(Became("-n 2 x", Environment(hydra)), HasSubstr("several processes of another one"));
}

TEST(TranslateMpirun, LeavesTheNumberOfRanksToTheTasksOfAStep) {
  const auto step = [](const char* tasks, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_STEP_ID=0",
                             "SLURM_STEP_NUM_NODES=2", tasks});
    return Environment(std::move(more));
  };
  EXPECT_EQ(Became("x", step("SLURM_STEP_NUM_TASKS=3")), "-- x");
  EXPECT_EQ(Became("-n 3 x", step("SLURM_STEP_NUM_TASKS=3")), "-n 3 -- x");
  EXPECT_EQ(Became("x", step("SLURM_STEP_NUM_TASKS=2")), "--nproc-per-node=1 -- x")
      << "a rank in each task, not one for each CPU";
  EXPECT_EQ(Became("-n 4 x", step("SLURM_STEP_NUM_TASKS=2")), "-n 4 -- x");
  EXPECT_EQ(Became("--standalone x", step("SLURM_STEP_NUM_TASKS=3")),
            "--standalone --nproc-per-node=cpu -- x");
  EXPECT_EQ(Became("x", step("SLURM_STEP_NUM_TASKS=3", {"TORCHELASTIC_RUN_ID=1.0"})),
            "--nproc-per-node=cpu -- x")
      << "in a worker";
}

TEST(TranslateMpirun, TakesTheWholeJobInAShellOfSrun) {
  const auto shell = [](const char* nodes, const char* tasks, const char* task = "0") {
    return Environment({"SLURM_JOB_ID=1", nodes, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=1",
                        "SLURM_PTY_PORT=5", absl::StrCat("SLURM_PROCID=", task),
                        absl::StrCat("SLURM_STEP_NUM_TASKS=", tasks),
                        absl::StrCat("SLURM_TASKS_PER_NODE=", tasks)});
  };
  EXPECT_EQ(Became("x", shell("SLURM_JOB_NODELIST=n[1-2]", "1")), "--hosts=allocation -- x");
  EXPECT_EQ(Became("-n 4 x", shell("SLURM_JOB_NODELIST=n[1-2]", "1")),
            "--hosts=allocation -n 4 -- x");
  EXPECT_EQ(Became("x", shell("SLURM_JOB_NODELIST=n1", "3")), "--hosts=allocation -n 3 -- x");
  EXPECT_EQ(Became("-n 2 x", shell("SLURM_JOB_NODELIST=n1", "3")), "-n 2 -- x");
  EXPECT_EQ(Became("x", shell("SLURM_JOB_NODELIST=n1", "3", "1")), "--nproc-per-node=cpu -- x");
}

TEST(TranslateMpirun, TakesTheHostsOfAnAllocationBesideANumber) {
  const std::vector<std::string> two = {"LSB_JOBID=1", "LSB_MCPU_HOSTS=a 2 b 2"};
  EXPECT_EQ(Became("-n 4 x", Environment(two)), "--hosts=allocation -n 4 -- x");
  EXPECT_EQ(Became("-n 4 -ppn 2 x", Environment(two)),
            "--hosts=allocation -n 4 --nproc-per-node=2 -- x");
  EXPECT_EQ(Became("-n 4 -H localhost:4 x", Environment(two)), "-n 4 -- x");
  EXPECT_EQ(Became("-n 4 x", Environment({"LSB_JOBID=1", "LSB_MCPU_HOSTS=a 4"})), "-n 4 -- x");
  std::vector<std::string> worker = two;
  worker.emplace_back("TORCHELASTIC_RUN_ID=1");
  EXPECT_EQ(Became("-n 4 x", Environment(worker)), "-n 4 -- x");
  const std::string file = testing::TempDir() + "/hlaunch_pbs_nodes";
  std::ofstream(file) << "a\na\nb\nb\n";
  const std::vector<std::string> pbs = {"PBS_JOBID=1", "PBS_NODEFILE=" + file};
  EXPECT_EQ(Became("-n 4 x", Environment(pbs)), "--hosts=allocation -n 4 -- x");
  std::vector<std::string> task = pbs;
  task.emplace_back("PBS_TASKNUM=2");
  EXPECT_EQ(Became("-n 4 x", Environment(task)), "-n 4 -- x");
  std::filesystem::remove(file);
}

TEST(TranslateMpirun, ShowsTheBlankOrCarriageReturnInANumber) {
  EXPECT_EQ(Became("-n 2\r x"),
            "-n '2': expected a number from 1 on, and \"2\\r\" has a blank or a control character");
  const std::vector<std::string> blank = {"-N", " 2", "x"};
  EXPECT_THAT(TranslateMpirun(blank, Environment(kSetHere), ReadPrograms).status().message(),
              HasSubstr("\" 2\" has a blank or a control character"));
  EXPECT_EQ(Became("-n z x"), "-n 'z': expected a number from 1 on");
}

// Like Open MPI, which counts the slots of a job of one host too.
TEST(TranslateMpirun, KeepsTheSlotsOfAJobUnlessItIsToldOtherwise) {
  const Environment one({"LSB_JOBID=1", "LSB_MCPU_HOSTS=a 3"});
  EXPECT_EQ(Became("-np 4 x", one),
            "-np 4: LSF job 1 has 3 slots; write --oversubscribe to start more ranks than slots");
  EXPECT_THAT(Became("-N 4 x", one), HasSubstr("4 ranks on a: it has 3 slots in LSF job 1; write"));
  EXPECT_THAT(Became("--nooversubscribe -n 4 x", one), HasSubstr("has 3 slots"));
  EXPECT_THAT(Became("-n 2 ./a : -n 2 ./b", one), HasSubstr("has 3 slots"));
  EXPECT_EQ(Became("-n 3 x", one), "-n 3 -- x");
  for (const char* way :
       {"--oversubscribe", "--map-by :OVERSUBSCRIBE", "--mca rmaps_base_oversubscribe 1"}) {
    EXPECT_EQ(Became(absl::StrCat(way, " -n 4 x"), one), "-n 4 -- x");
  }
  EXPECT_EQ(Became("--cluster none -n 4 x", one), "--cluster none -n 4 -- x");
  EXPECT_EQ(Became("-n 4 -genv A 1 x", one), "-x A=1 -n 4 -- x") << "as Hydra";
  EXPECT_TRUE(TranslateMpirun(Split("-n 4 x"), one, ReadPrograms, "/bin/mpiexec.hydra").ok());
  EXPECT_FALSE(TranslateMpirun(Split("-n 4 x"), one, ReadPrograms, "/bin/mpiexec").ok());
  EXPECT_EQ(Became("-n 4 x", Environment({"LSB_JOBID=1", "LSB_MCPU_HOSTS=a 1"})), "-n 4 -- x")
      << "nobody asked for a number";
  const std::vector<std::string> slurm = {"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]",
                                          "SLURM_JOB_NUM_NODES=2"};
  const auto two = [&slurm](const char* more) {
    std::vector<std::string> all = slurm;
    all.emplace_back(more);
    return Environment(all);
  };
  const Environment even = two("SLURM_TASKS_PER_NODE=2(x2)");
  EXPECT_THAT(Became("-n 5 x", even), HasSubstr("-n 5: Slurm job 17 has 4 slots"));
  EXPECT_THAT(Became("-N 3 x", even), HasSubstr("3 ranks on n1: it has 2 slots in Slurm job 17"));
  EXPECT_THAT(Became("--map-by ppr:3:node x", even), HasSubstr("3 ranks on n1: it has 2 slots"));
  EXPECT_EQ(Became("-n 4 x", even), "-n 4 -- x");
  EXPECT_EQ(Became("-N 3 --oversubscribe x", even), "--nproc-per-node=3 -- x");
  EXPECT_THAT(
      Became("-n 7 --oversubscribe x", even),
      AllOf(HasSubstr("--launch-agent=srun -w %h"), EndsWith("--hosts=n1:4,n2:3 -n 7 -- x")));
  EXPECT_THAT(Became("-n 5 --oversubscribe x", two("SLURM_TASKS_PER_NODE=2,1")),
              EndsWith("--hosts=n1:3,n2:2 -n 5 -- x"));
  EXPECT_THAT(Became("-N 2 x", two("SLURM_TASKS_PER_NODE=2,1")), HasSubstr("n2: it has 1 slot in"));
  EXPECT_THAT(Became("-n 2 x", Environment({"SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=n1",
                                            "SLURM_TASKS_PER_NODE=1", "SLURM_NTASKS=1"})),
              HasSubstr("-n 2: Slurm job 1 has 1 slot; write"));
}

// As Open MPI. They were refused.
TEST(TranslateMpirun, SpreadsRanksBeyondTheSlotsOfNamedHostsWhereItIsAsked) {
  const Environment none({"A=1"});
  EXPECT_EQ(Became("-H a:4,b:2 -n 9 --oversubscribe x", none), "--hosts=a:6,b:3 -n 9 -- x");
  EXPECT_EQ(Became("-H me@a,b:2,c -n 5 --map-by :OVERSUBSCRIBE x", none),
            "--hosts=me@a:2,b:2,c:1 -n 5 -- x");
  EXPECT_EQ(Became("-H [fd00::1]:1,b:1 -n 3 --oversubscribe x", none),
            "--hosts=[fd00::1]:2,b:1 -n 3 -- x");
  for (const char* as_it_is : {"-H a,b -n 4", "-H a:4,b:4 -n 3", "-H a:1,b:1 -N 2"}) {
    const std::string plain = Became(absl::StrCat(as_it_is, " x"), none);
    EXPECT_EQ(Became(absl::StrCat(as_it_is, " --oversubscribe x"), none), plain) << as_it_is;
  }
  const Environment job({"LSB_JOBID=1", "LSB_MCPU_HOSTS=a 2 b 2"});
  EXPECT_THAT(Became("-H a,b -n 6 x", job), HasSubstr("a has 2 slots in LSF job 1"));
  EXPECT_THAT(Became("-H a,b -n 6 --oversubscribe x", job), EndsWith("--hosts=a,b -n 6 -- x"));
  EXPECT_THAT(Became("-H a:3 --oversubscribe x", job), EndsWith("--hosts=a:3 -n 3 -- x"));
  EXPECT_THAT(Became("-H a:2,b:1 -n 6 --oversubscribe x", job),
              EndsWith("--hosts=a:4,b:2 -n 6 -- x"));
}

TEST(TranslateMpirun, NamesTheListOfHostsThatCannotBeRead) {
  for (const char* line : {"x", "-n 2 x"}) {
    EXPECT_EQ(Became(line, Environment({"PBS_JOBID=1", "PBS_NODEFILE=/no/file"})),
              "PBS_NODEFILE=/no/file: the hosts of PBS job 1 cannot be read there; name them with "
              "--hosts A,B, or write --cluster none for this host alone");
    EXPECT_THAT(Became(line, Environment({"JOB_ID=1", "PE_HOSTFILE=/no/file"})),
                HasSubstr("PE_HOSTFILE=/no/file: the hosts of job 1 of Grid Engine"));
  }
  EXPECT_EQ(Became("--cluster none -n 2 x", Environment({"PBS_JOBID=1", "PBS_NODEFILE=/no/file"})),
            "--cluster none -n 2 -- x");
}

// It filled the first host.
TEST(TranslateMpirun, PlacesByNodeInAJobAsOnNamedHosts) {
  const Environment slurm({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_NUM_NODES=2",
                           "SLURM_TASKS_PER_NODE=2(x2)"});
  EXPECT_EQ(Became("--map-by node -n 2 x", slurm), "-n 2 --nproc-per-node=1 -- x");
  EXPECT_EQ(Became("--map-by node -N 1 x", slurm), "--nproc-per-node=1 -- x");
  for (const char* line : {"--map-by node -n 3 x", "--map-by node x", "--rank-by node -n 2 x"}) {
    EXPECT_THAT(Became(line, slurm), HasSubstr(" node: Slurm job 17 has 2 hosts, and ranks are "))
        << line;
  }
  EXPECT_EQ(Became("--map-by node -n 2 x", Environment({"LSB_JOBID=1", "LSB_MCPU_HOSTS=a 2 b 2"})),
            "--hosts=allocation -n 2 --nproc-per-node=1 -- x");
  EXPECT_EQ(Became("--map-by node -n 2 x", Environment({"LSB_JOBID=1", "LSB_MCPU_HOSTS=a 2"})),
            "-n 2 -- x");
}

// As Open MPI. The step has one slot, whatever its job has.
TEST(TranslateMpirun, StaysInAStepOfOneTask) {
  const auto step = [](const char* id) {
    return Environment({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_NUM_NODES=2",
                        "SLURM_TASKS_PER_NODE=2(x2)", "SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0",
                        "SLURM_STEP_NUM_NODES=1", "SLURMD_NODENAME=n2", id});
  };
  EXPECT_EQ(Became("x", step("SLURM_STEP_ID=3")), "-n 1 -- x");
  EXPECT_THAT(Became("-n 2 x", step("SLURM_STEP_ID=3")),
              HasSubstr("-n 2: Slurm step 17.3 has 1 slot; write --oversubscribe"));
  EXPECT_EQ(Became("-n 2 --oversubscribe x", step("SLURM_STEP_ID=3")), "-n 2 -- x");
  EXPECT_EQ(Became("x", step("SLURM_STEP_ID=4294967290")), "--hosts=allocation -n 4 -- x")
      << "the shell of salloc";
  const Environment batch({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_NUM_NODES=2",
                           "SLURM_TASKS_PER_NODE=2(x2)", "SLURM_NTASKS=4", "SLURM_STEP_ID=0",
                           "SLURM_STEP_NUM_TASKS=1", "SLURM_STEP_NUM_NODES=1", "SLURM_PROCID=0"});
  EXPECT_EQ(Became("x", batch), "--hosts=allocation -n 4 -- x")
      << "a script that was submitted within a step of one task";
}

TEST(TranslateMpirun, IsRefusedInAHeterogeneousJobOutsideOfItsSteps) {
  const auto job = [](const char* more) {
    return Environment({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n1", "SLURM_HET_SIZE=2", more});
  };
  for (const char* line : {"x", "-n 2 x"}) {
    EXPECT_THAT(Became(line, job("A=1")),
                HasSubstr("Slurm job 17 is heterogeneous, of 2 parts, and srun starts the ranks on "
                          "all of their hosts: write srun --het-group=0-1 mpirun ..."));
  }
  EXPECT_EQ(Became("-H n1 -n 2 x", job("A=1")), "--hosts=n1 -n 2 -- x");
  EXPECT_EQ(Became("x", job("SLURM_STEP_ID=0")), "--nproc-per-node=cpu -- x");
}

TEST(TranslateMpirun, SaysWhatChangesNothing) {
  const auto line = Translate("--mca plm_base_verbose 5 --prefix /opt -n 1 x");
  EXPECT_THAT(
      line->remarks,
      ElementsAre("--mca plm_base_verbose is for a part of mpirun that is not here: ignored",
                  "--prefix is for a part of mpirun that is not here: ignored"));
  EXPECT_THAT(Translate("--mca pml ucx -n 1 x")->remarks, IsEmpty());
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
      {"-n 2 a : b", "program 2: of several programs each needs -n N"},
      {"a : -n 2 b", "program 1: of several programs each needs -n N"},
      {"-n 2 a :", "program 2: no program given"},
      {"-n 2 a : -n x b", "program 2: -n 'x': expected a number"},
      {"-n 2 a : -n 1 --timeout 5 b", "program 2: --timeout=5 is for all programs"},
      {"-n 2 a : -n 1 --bind-to core b", "program 2: an option of it is for all programs"},
      {"-n 1 --prefix --mca btl tcp a",
       "--prefix needs a value, DIR, and what follows is another word, --mca"},
      {"--host -n 2 a", "--host needs a value, a,b:4, and what follows is another word, -n"},
      {"-n 1 --host a x : -n 1 y : -n 1 --host b z", "program 3: --host for each program"},
      {"-n 1 --host a x : -n 1 --host b y : -n 1 --host a z",
       "program 3: host a comes a second time"},
      {"-n 3 --host a:2 x : -n 1 --host b y", "program 1: -n 3: the hosts have room for 2"},
      {"--app programs x", "leave out x"},
      {"--app none", "none: no such file"},
      {"--rankfile r a", "r: no such file"},
      {"-n 3 --rankfile ranks a", "-n 3: ranks has 2 ranks"},
      {"--bind-to core --rankfile ranks a", "leave --host, --hostfile, --map-by and --bind-to out"},
      {"--map-by slot:PE=2 --rankfile ranks a", "leave --host, --hostfile, --map-by and --bind-to"},
      {"--map-by ppr:1:node --rankfile ranks a", "leave --host, --hostfile, --map-by and --bind-t"},
      {"--host a --rankfile ranks a", "leave --host, --hostfile, --map-by and --bind-to out"},
      {"--hostfile f --rankfile ranks a", "leave --host, --hostfile, --map-by and --bind-to out"},
      {"--map-by ppr:2 a", "expected ppr:N:OBJECT"},
      {"--map-by ppr:0:node a", "expected ppr:N:OBJECT"},
      {"--host a,b --map-by node a", "write --map-by ppr:N:node"},
      {"--host a,b --rank-by node a", "--rank-by node: ranks are numbered host by host"},
      {"--map-by ppr:2:board a", "ppr:N:board: expected node, socket"},
      {"--map-by slot:NOLOCAL a", "'NOLOCAL'"},
      {"--bind-to hwthread a", "never split"},
      {"--bind-to numa:2 a", "write core:N"},
      {"--rank-by span a", "host by host"},
      {"--stdin 1 a", "expected 0, all or none"},
      {"--tag-outputs a", "did you mean --tag-output?"},
      {"--oversubscribe=1 a", "leave out what follows ="},
      {"-launcher slurm a", "--launch-agent"},
  };
  for (const auto& row : rows) {
    const auto line = Translate(row.typed);
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
  const auto line = Translate("-n 2 --help");
  EXPECT_THAT(*line->text_to_print,
              AllOf(HasSubstr("  --timeout S\n"), Not(HasSubstr("`")), Not(HasSubstr("]("))));
}

// hlaunch accepts the translated lines.
TEST(TranslateMpirun, MakesLinesThatHlaunchReads) {
  const auto line = Translate(
      "-n 2 --tag-output --timestamp-output --merge-stderr-to-stdout --stdin none --wdir /tmp "
      "--map-by slot:PE=2 --timeout 9 -x A=1 -genvnone --output-filename d ./a -x");
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
