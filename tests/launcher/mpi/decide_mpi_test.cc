// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/mpi/decide_mpi.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "launcher/mpi/elf_needs.h"

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

TEST(DecideMpi, NeverStartsAnMpiProgramAsSeparateWorldsUnasked) {
  const Case cases[] = {
      {MpiWish::kAuto, MpiFlavour::kPmi, kOne, false, MpiOffer::kDescriptor},
      {MpiWish::kPmi, MpiFlavour::kPmi, kOne, false, MpiOffer::kDescriptor},
      {MpiWish::kNone, MpiFlavour::kPmi, kOne, false, MpiOffer::kNone},
      {MpiWish::kAuto, MpiFlavour::kNone, kOne, false, MpiOffer::kMaybe},
      {MpiWish::kPmi, MpiFlavour::kNone, kOne, false, MpiOffer::kPort},
      {MpiWish::kAuto, MpiFlavour::kOpenMpi, kOne, false, MpiOffer::kPmix},
      {MpiWish::kAuto, MpiFlavour::kOpenMpi, kNoPmix, true, MpiOffer::kNone},
      {MpiWish::kPmix, MpiFlavour::kNone, kOne, false, MpiOffer::kPmix},
      {MpiWish::kPmix, MpiFlavour::kNone, kNoPmix, true, MpiOffer::kNone},
      {MpiWish::kPmix, MpiFlavour::kPmi, kOne, false, MpiOffer::kPmix},
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

TEST(LookForMpi, FindsTheProgramBehindTheOptionsOfEnv) {
  const std::filesystem::path folder =
      testing::TempDir() + "decide_mpi_test." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "python3") << "";
  const Environment environment({"PATH=" + folder.string(), "MPI4PY_MPIABI=openmpi"});
  for (const char* line : {"env python3", "env -S python3 -u", "env -S A=1 python3"}) {
    std::ofstream(folder / "train") << "#!/usr/bin/" << line << "\nimport mpi4py\n";
    const MpiProgram found = LookForMpi({folder / "train"}, environment);
    EXPECT_EQ(found.flavour, MpiFlavour::kOpenMpi) << line;
  }
  std::filesystem::remove_all(folder);
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
