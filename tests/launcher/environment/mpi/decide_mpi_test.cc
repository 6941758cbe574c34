// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/decide_mpi.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launcher/environment/mpi/elf_needs.h"
#include "launcher/environment/mpi/shell_commands.h"

namespace hlaunch {
namespace {

struct Case {
  MpiWish wish;
  MpiFlavour flavour;
  MpiSurroundings around;
  bool refused;
  MpiOffer offer;
};

const MpiSurroundings kAlone = {true, false, false, false};
const MpiSurroundings kAloneNoPmix = {true, false, false, false, {"", "", "no libpmix.so.2"}};
const MpiSurroundings kOne = {};
const MpiSurroundings kPerNode = {false, true, true, false};
const MpiSurroundings kWorkerStore = {false, false, true, true};
const MpiSurroundings kNodesWithoutLibpmix = {
    false, false, true, false, {"hlaunch-pmix", "", "there is no libpmix.so.2"}};
const MpiSurroundings kNoPmix = {false, false, false, false, {"", "", "there is no libpmix.so.2"}};

TEST(MpiOfAll, IsWhatOneWorldNeeds) {
  const MpiProgram none, pmi{MpiFlavour::kPmi, "libmpi.so.12"};
  const MpiProgram open{MpiFlavour::kOpenMpi, "libmpi.so.40"}, unknown{MpiFlavour::kUnknown, "x"};
  EXPECT_EQ(MpiOfAll({})->flavour, MpiFlavour::kNone);
  EXPECT_EQ(MpiOfAll({none, pmi})->seen, "libmpi.so.12");
  EXPECT_EQ(MpiOfAll({{MpiFlavour::kNone, "mpi4py"}, none})->seen, "mpi4py");
  EXPECT_EQ(MpiOfAll({unknown, open, none})->seen, "libmpi.so.40");
  EXPECT_EQ(MpiOfAll({pmi, none, open}).status().message(),
            "one program needs libmpi.so.12 and another libmpi.so.40, which cannot be one MPI "
            "world: build both with one MPI; --mpi none starts separate worlds");
  EXPECT_TRUE(Differ({none, pmi}));
  EXPECT_FALSE(Differ({pmi, pmi}) || Differ({}));
  MpiSurroundings around = kOne;
  around.differ = true;
  EXPECT_EQ(DecideMpi(MpiWish::kAuto, pmi, around)->offer, MpiOffer::kPort);
}

TEST(MayUsePmix, SaysNoOnlyWhereTheToolsChangeNothing) {
  int without = 0;
  for (const MpiWish wish :
       {MpiWish::kAuto, MpiWish::kAny, MpiWish::kPmi, MpiWish::kPmix, MpiWish::kNone}) {
    for (const MpiFlavour flavour :
         {MpiFlavour::kNone, MpiFlavour::kPmi, MpiFlavour::kOpenMpi, MpiFlavour::kUnknown}) {
      const MpiProgram program{flavour, flavour == MpiFlavour::kNone ? "" : "libmpi.so"};
      if (MayUsePmix(wish, program)) continue;
      ++without;
      for (MpiSurroundings around : {kAlone, kOne, kPerNode, kWorkerStore}) {
        const auto with_tools = DecideMpi(wish, program, around);
        around.pmix = kNoPmix.pmix;
        const auto without_tools = DecideMpi(wish, program, around);
        ASSERT_EQ(with_tools.status(), without_tools.status());
        if (!with_tools.ok()) continue;
        EXPECT_EQ(with_tools->offer, without_tools->offer);
        EXPECT_EQ(with_tools->reason, without_tools->reason);
      }
    }
  }
  EXPECT_GT(without, 0);
}

TEST(DecideMpi, NeverStartsAnMpiProgramAsSeparateWorldsUnasked) {
  const Case cases[] = {
      {MpiWish::kAuto, MpiFlavour::kPmi, kOne, false, MpiOffer::kDescriptor},
      {MpiWish::kPmi, MpiFlavour::kPmi, kOne, false, MpiOffer::kDescriptor},
      {MpiWish::kNone, MpiFlavour::kPmi, kOne, false, MpiOffer::kNone},
      {MpiWish::kAuto, MpiFlavour::kNone, kOne, false, MpiOffer::kMaybe},
      {MpiWish::kPmi, MpiFlavour::kNone, kOne, false, MpiOffer::kPort},
      {MpiWish::kAuto, MpiFlavour::kOpenMpi, kOne, false, MpiOffer::kPmix},
      {MpiWish::kAuto, MpiFlavour::kOpenMpi, kNoPmix, true, MpiOffer::kNone},
      {MpiWish::kPmix, MpiFlavour::kNone, kOne, false, MpiOffer::kAny},
      {MpiWish::kPmix, MpiFlavour::kNone, kNoPmix, true, MpiOffer::kNone},
      {MpiWish::kPmix, MpiFlavour::kPmi, kOne, false, MpiOffer::kAny},
      {MpiWish::kPmix, MpiFlavour::kUnknown, kOne, false, MpiOffer::kAny},
      {MpiWish::kPmix, MpiFlavour::kOpenMpi, kOne, false, MpiOffer::kPmix},
      {MpiWish::kAuto, MpiFlavour::kUnknown, kOne, false, MpiOffer::kAny},
      {MpiWish::kAuto, MpiFlavour::kUnknown, kNoPmix, false, MpiOffer::kPort},
      {MpiWish::kPmi, MpiFlavour::kUnknown, kOne, false, MpiOffer::kPort},
      {MpiWish::kAuto, MpiFlavour::kUnknown, kWorkerStore, true, MpiOffer::kNone},
      {MpiWish::kPmix, MpiFlavour::kNone, kWorkerStore, true, MpiOffer::kNone},
      {MpiWish::kPmi, MpiFlavour::kOpenMpi, kOne, false, MpiOffer::kPort},
      {MpiWish::kNone, MpiFlavour::kOpenMpi, kOne, false, MpiOffer::kNone},
      {MpiWish::kAuto, MpiFlavour::kOpenMpi, kAlone, false, MpiOffer::kPmix},
      {MpiWish::kAuto, MpiFlavour::kOpenMpi, kAloneNoPmix, false, MpiOffer::kNone},
      {MpiWish::kAuto, MpiFlavour::kPmi, kAlone, false, MpiOffer::kDescriptor},
      {MpiWish::kAuto, MpiFlavour::kNone, kAlone, false, MpiOffer::kNone},
      {MpiWish::kAuto, MpiFlavour::kNone, kPerNode, false, MpiOffer::kNone},
      {MpiWish::kAuto, MpiFlavour::kPmi, kWorkerStore, true, MpiOffer::kNone},
      {MpiWish::kPmi, MpiFlavour::kNone, kWorkerStore, true, MpiOffer::kNone},
      {MpiWish::kAuto, MpiFlavour::kNone, kWorkerStore, false, MpiOffer::kNone},
      {MpiWish::kAny, MpiFlavour::kNone, kOne, false, MpiOffer::kAny},
      {MpiWish::kAny, MpiFlavour::kNone, kNoPmix, false, MpiOffer::kPort},
      {MpiWish::kAny, MpiFlavour::kNone, kNodesWithoutLibpmix, false, MpiOffer::kAny},
      {MpiWish::kAny, MpiFlavour::kPmi, kOne, false, MpiOffer::kDescriptor},
      {MpiWish::kAny, MpiFlavour::kOpenMpi, kOne, false, MpiOffer::kPmix},
      {MpiWish::kAny, MpiFlavour::kOpenMpi, kNoPmix, true, MpiOffer::kNone},
      {MpiWish::kAny, MpiFlavour::kNone, kAlone, false, MpiOffer::kNone},
      {MpiWish::kAny, MpiFlavour::kNone, kWorkerStore, false, MpiOffer::kNone},
  };
  for (const Case& c : cases) {
    const std::string seen = c.flavour == MpiFlavour::kNone ? "" : "libmpi";
    const auto decision = DecideMpi(c.wish, {c.flavour, seen}, c.around);
    const int number = static_cast<int>(&c - cases);
    EXPECT_EQ(!decision.ok(), c.refused) << number;
    if (!decision.ok()) continue;
    EXPECT_EQ(decision->offer, c.offer) << number;
    EXPECT_FALSE(decision->reason.empty()) << number;
  }
}

TEST(DecideMpi, ALoneWorkerOfMpi4pyMaySpawn) {
  EXPECT_EQ(DecideMpi(MpiWish::kAuto, {MpiFlavour::kNone, "mpi4py"}, kAlone)->offer,
            MpiOffer::kMaybe);
}

// A folder whose python3 has mpi4py with Open MPI, by its environment.
class LookForMpiTest : public testing::Test {
 protected:
  LookForMpiTest() {
    std::filesystem::create_directories(folder_ / "pkg");
    Write("python3", "");
    Write("tool", "");
    for (const char* name : {"python3", "tool"}) {
      std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    }
    Write("solver.py", "from mpi4py import MPI\n");
    Write("direct.py", "import mpi4py\n");
    Write("indirect.py", "import os, solver\n");
    Write("plain.py", "import os, torch\n");
    Write("pkg/__init__.py", "");
    Write("pkg/__main__.py", "from . import deep\n");
    Write("pkg/deep.py", "if True:\n  from mpi4py import MPI\n");
  }
  ~LookForMpiTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string Path(const std::string& name) const { return folder_ / name; }
  MpiFlavour Look(const std::vector<std::string>& argv) const {
    return LookForMpi(argv, environment_).flavour;
  }

  const std::filesystem::path folder_ =
      testing::TempDir() + "decide_mpi_test." + std::to_string(::getpid());
  const Environment environment_{{"PATH=" + folder_.string() + ":/usr/bin:/bin",
                                  "PYTHONPATH=" + folder_.string(), "MPI4PY_MPIABI=openmpi"}};
};

TEST_F(LookForMpiTest, FindsTheProgramBehindTheOptionsOfEnv) {
  for (const char* line : {"env python3", "env -S python3 -u", "env -S A=1 python3"}) {
    Write("train", std::string("#!/usr/bin/") + line + "\nimport mpi4py\n");
    EXPECT_EQ(Look({Path("train")}), MpiFlavour::kOpenMpi) << line;
  }
}

TEST_F(LookForMpiTest, FollowsTheImportsOfAPythonProgram) {
  const std::string python = Path("python3");
  EXPECT_EQ(Look({python, Path("direct.py")}), MpiFlavour::kOpenMpi);
  EXPECT_EQ(Look({python, "-u", "-W", "ignore", Path("indirect.py")}), MpiFlavour::kOpenMpi);
  EXPECT_EQ(Look({python, "-m", "pkg"}), MpiFlavour::kOpenMpi);
  EXPECT_EQ(Look({python, "-m", "pkg.deep"}), MpiFlavour::kOpenMpi);
  EXPECT_EQ(Look({python, "-c", "import os; import solver"}), MpiFlavour::kOpenMpi);
  EXPECT_EQ(Look({python, Path("plain.py")}), MpiFlavour::kNone);
  EXPECT_EQ(Look({python, "-m", "torch.distributed.run"}), MpiFlavour::kNone);
}

// What a wrapper starts is likely, so both protocols are offered.
TEST_F(LookForMpiTest, LooksBehindWrappers) {
  const std::string direct = Path("direct.py");
  const std::string command = "cd /; A=1 exec python3 " + direct + " # run";
  Write("run.sh", "#!/bin/sh\nset -e\n\"" + Path("python3") + "\" \\\n  \"" + direct + "\"\n");
  std::filesystem::permissions(Path("run.sh"), std::filesystem::perms::owner_all);
  Write("arguments.sh", "exec \"$@\"\n");
  Write("plain.sh", "python3 " + Path("plain.py") + "\nmpirun -n 2 python3 " + direct + "\n");
  for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
           {"env", "A=1", "python3", direct},
           {"timeout", "10", "env", "-u", "B", "python3", direct},
           {"sh", "-c", command},
           {"bash", "-lc", command},
           {"sh", "-c", "sh -c '" + command + "'"},
           {Path("run.sh")},
           {"bash", Path("run.sh")},
           {"sh", Path("arguments.sh"), "python3", direct},
           {Path("tool"), "-o", "report", "--", "python3", direct}}) {
    const MpiProgram found = LookForMpi(argv, environment_);
    EXPECT_EQ(found.flavour, MpiFlavour::kUnknown) << argv.back();
    EXPECT_FALSE(found.seen.empty()) << argv.back();
  }
  Write("folder.sh",
        "#!/bin/bash\nHERE=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"\n"
        "exec \"$HERE/python3\" $HERE/direct.py\n");
  EXPECT_EQ(Look({"bash", Path("folder.sh")}), MpiFlavour::kUnknown);
  EXPECT_EQ(Look({"sh", "-c", "cd " + folder_.string() + " && ./python3 direct.py"}),
            MpiFlavour::kUnknown);
  EXPECT_EQ(Look({"sh", "-c", "export W=$PYTHONPATH; $W/python3 ${W}/direct.py"}),
            MpiFlavour::kUnknown);
  EXPECT_EQ(Look({"sh", Path("plain.sh")}), MpiFlavour::kNone);
  EXPECT_EQ(Look({"env", "python3", Path("plain.py")}), MpiFlavour::kNone);
  EXPECT_EQ(Look({"sh", "-c", "echo done"}), MpiFlavour::kNone);
}

TEST(CommandsIn, ReadsLinesAsPeopleWriteThem) {
  using Commands = std::vector<std::vector<std::string>>;
  EXPECT_EQ(CommandsIn("a b; 'c d' \"e\" && f|g > h # not this; nor this\n", 9),
            (Commands{{"a", "b"}, {"c d", "e"}, {"f"}, {"g", "h"}}));
  EXPECT_EQ(CommandsIn("a \\\n  b\r\n(c)", 9), (Commands{{"a", "b"}, {"c"}}));
  EXPECT_EQ(CommandsIn("a\nb\nc", 2).size(), 2U);
  EXPECT_TRUE(CommandsIn("'", 9).empty());
}

TEST(Expand, KnowsTheUsualWaysToAFolder) {
  const Environment environment({"HOME=/home/me"});
  ShellScope scope{"/opt/run/go.sh", "", &environment};
  Follow({"HERE=$(dirname $0)"}, scope);
  Follow({"export", "BIN=${HERE}/bin"}, scope);
  EXPECT_EQ(Expand("$BIN/prog", scope), "/opt/run/bin/prog");
  EXPECT_EQ(Expand("$(cd $(dirname ${BASH_SOURCE[0]}) && pwd)/x", scope), "/opt/run//x");
  EXPECT_EQ(Expand("$(dirname $(readlink -f $0))/x", scope), "/opt/run/x");
  EXPECT_EQ(Expand("${HOME:-/tmp}/a$NONE.b$", scope), "/home/me/a.b");
  Follow({"cd", "/data"}, scope);
  Follow({"cd", "deep"}, scope);
  EXPECT_EQ(scope.folder, "/data/deep/");
  EXPECT_EQ(Expand("$(", scope), "");
  std::string nested;
  for (int i = 0; i < 1 << 16; ++i) nested += "$(cd ";
  EXPECT_EQ(Expand(nested, scope), "") << "and that at once";
}

TEST(FlavourOfLibrary, KnowsTheFamilies) {
  for (const char* name :
       {"libmpi.so.12", "libmpich.so.12", "libmpifort.so.12", "libmpi_abi.so.1"}) {
    EXPECT_EQ(FlavourOfLibrary(name), MpiFlavour::kPmi) << name;
  }
  for (const char* name :
       {"libmpi.so.40", "libopen-rte.so.40", "libopen-pal.so.80", "libmpi_mpifh.so.40"}) {
    EXPECT_EQ(FlavourOfLibrary(name), MpiFlavour::kOpenMpi) << name;
  }
  for (const char* name : {"libc.so.6", "libmpfr.so.6", "libmpdec.so.3", "libmpc.so.3"}) {
    EXPECT_EQ(FlavourOfLibrary(name), MpiFlavour::kNone) << name;
  }
}

TEST(ReadElfNeeds, ReadsThisProgram) {
  const auto needs = ReadElfNeeds("/proc/self/exe");
  ASSERT_TRUE(needs.ok()) << needs.status();
  EXPECT_FALSE(needs->libraries.empty());
  EXPECT_FALSE(ReadElfNeeds("/no/such").ok());
  EXPECT_FALSE(ReadElfNeeds("/etc/passwd").ok());
}

}  // namespace
}  // namespace hlaunch
