// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/python/find_python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// Programs in a folder of their own: bin/python3 and venv/bin/python3, an environment.
class FindPythonTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hlaunch_python_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = fs::canonical(pattern);
    Write("bin/python3");
    Write("venv/bin/python3");
    Write("venv/bin/python");
    Write("venv/pyvenv.cfg");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& content = "#!/bin/sh\n") const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
    ASSERT_EQ(::chmod((root_ / path).c_str(), 0755), 0);
  }
  void Link(const std::string& target, const std::string& path) const {
    fs::create_directories((root_ / path).parent_path());
    fs::create_symlink(target, root_ / path);
  }
  std::string At(const std::string& path) const { return (root_ / path).string(); }

  // PATH has `folders`, separated by colons, of this test's own.
  Environment With(std::vector<std::string> variables, const std::string& folders = "bin") const {
    variables.push_back("PATH=/nowhere:" + At(folders));
    return Environment(variables);
  }

  fs::path root_;
};

TEST_F(FindPythonTest, TakesWhatTheUserNamesThenItsOwnThenThatOfTheShell) {
  const std::string own = "HLAUNCH_PYTHON=" + At("venv/bin/python3");
  EXPECT_EQ(*FindPython(With({"PYTHON_EXEC=python3", own}, "bin")), At("bin/python3"));
  EXPECT_EQ(*FindPython(With({own})), At("venv/bin/python3"));
  EXPECT_EQ(*FindPython(With({})), At("bin/python3"));
}

TEST_F(FindPythonTest, LeavesAnEnvironmentAloneThatIsNoLongerActive) {
  const std::string left = "VIRTUAL_ENV=" + At("venv");
  EXPECT_EQ(*FindPython(With({left})), At("bin/python3"));
  EXPECT_EQ(*FindPython(With({left}, "venv/bin")), At("venv/bin/python3"));
  EXPECT_EQ(*FindPython(With({"CONDA_PREFIX=" + At("venv")}, "empty")), At("venv/bin/python"));
}

TEST_F(FindPythonTest, RefusesAnActiveEnvironmentWhosePythonDoesNotRun) {
  Write("old/bin/python", "#!/gone/python9\n");
  const Environment active(
      {"VIRTUAL_ENV=" + At("old"), absl::StrCat("PATH=", At("old/bin"), ":", At("bin"))});
  EXPECT_EQ(FindPython(active).status(),
            absl::NotFoundError(absl::StrCat(
                "VIRTUAL_ENV is ", At("old"), ", whose python does not run: ", At("old/bin/python"),
                " needs /gone/python9, which is gone; activate another environment, unset "
                "VIRTUAL_ENV, or set PYTHON_EXEC")));
  const Environment behind(
      {"VIRTUAL_ENV=" + At("old"), absl::StrCat("PATH=", At("bin"), ":", At("old/bin"))});
  EXPECT_EQ(*FindPython(behind), At("bin/python3"));
}

TEST_F(FindPythonTest, RefusesAnActiveEnvironmentWhosePythonIsMissing) {
  fs::create_directories(root_ / "old/bin");
  const std::string active = "VIRTUAL_ENV=" + At("old");
  const auto found = [&](const char* folder) {
    return FindPython(Environment({active, absl::StrCat("PATH=", At(folder), "/bin:", At("bin"))}));
  };
  EXPECT_THAT(found("old").status().message(),
              HasSubstr("/old/bin/python is missing; activate another environment"));
  fs::remove_all(root_ / "old");
  EXPECT_THAT(found("old").status().message(), HasSubstr("/old/bin/python is missing"));
  EXPECT_EQ(*found("empty"), At("bin/python3")) << "it is no longer active";
  Write("old/bin/python3");
  EXPECT_EQ(*found("old"), At("old/bin/python3"));
  fs::remove(root_ / "venv/bin/python3");
  const std::string own = PythonBeside(At("venv/bin/x"), At("venv/bin/x"), With({}));
  EXPECT_THAT(FindPython(With({"HLAUNCH_PYTHON=" + own})).status().message(),
              HasSubstr("/venv/bin/python3 is missing; make the environment anew"));
}

TEST_F(FindPythonTest, RefusesItsOwnEnvironmentIfThatDoesNotRun) {
  fs::remove(root_ / "venv/bin/python3");
  Link("/gone/python3", "venv/bin/python3");
  const std::string python = PythonBeside(At("venv/bin/x"), At("venv/bin/x"), With({}));
  EXPECT_EQ(python, At("venv/bin/python3"));
  EXPECT_THAT(
      FindPython(With({"HLAUNCH_PYTHON=" + python})).status().message(),
      HasSubstr("/venv/bin/python3 leads to a file that is gone; make the environment anew, "
                "or set PYTHON_EXEC"));
}

TEST_F(FindPythonTest, NamesAMissingInterpreter) {
  EXPECT_EQ(FindPython(With({"PYTHON_EXEC=/gone/python"})).status(),
            absl::NotFoundError(
                "PYTHON_EXEC is /gone/python, which is no program; correct it or unset it"));
  EXPECT_EQ(FindPython(With({}, "empty")).status().message(),
            "no python3 in PATH; install it, set PYTHON_EXEC, or use --no-python for another "
            "program");
}

TEST_F(FindPythonTest, IsBesideAProgramInAnEnvironment) {
  Write("venv/bin/hlaunch");
  const std::string program = At("venv/bin/hlaunch");
  EXPECT_EQ(PythonBeside(program, program, With({})), At("venv/bin/python3"));
  EXPECT_EQ(PythonBeside("hlaunch", program, With({}, "venv/bin")), At("venv/bin/python3"));
  // As the process tells once an update has replaced the file.
  EXPECT_EQ(PythonBeside(program, program + " (deleted)", With({})), At("venv/bin/python3"));
  // What a host was sent lies nowhere.
  EXPECT_EQ(PythonBeside("/proc/self/fd/3", "/tmp/gone/hlaunch (deleted)", With({})), "");
}

TEST_F(FindPythonTest, IsBesideTheProgramsOfCondaAndOfAnInstallationInAnEnvironment) {
  Write("conda/bin/python3");
  Write("conda/libexec/hlaunch/hlaunch-agent");
  fs::create_directories(root_ / "conda/conda-meta");
  const std::string agent = At("conda/libexec/hlaunch/hlaunch-agent");
  EXPECT_EQ(PythonBeside("hlaunch", agent, With({})), At("conda/bin/python3"));
}

TEST_F(FindPythonTest, FollowsLinksIntoAnEnvironmentAndOutOfIt) {
  Write("venv/bin/hlaunch");
  Link(At("venv/bin/hlaunch"), "bin/hlaunch");
  Link("hlaunch", "bin/torchrun");
  EXPECT_EQ(PythonBeside("torchrun", At("venv/bin/hlaunch"), With({})), At("venv/bin/python3"));
  Write("opt/bin/hlaunch");
  Link("../../opt/bin/hlaunch", "venv/bin/mpirun");
  EXPECT_EQ(PythonBeside(At("venv/bin/mpirun"), At("opt/bin/hlaunch"), With({})),
            At("venv/bin/python3"));
  // A name that leads to another program says nothing of this one.
  EXPECT_EQ(PythonBeside(At("venv/bin/hlaunch"), At("opt/bin/hlaunch"), With({})), "");
}

TEST_F(FindPythonTest, TakesTheEnvironmentBehindALinkToItsFolder) {
  Write("venv/bin/hlaunch");
  Link("venv/bin", "shortcut");
  EXPECT_EQ(PythonBeside(At("shortcut/hlaunch"), At("venv/bin/hlaunch"), With({})),
            At("venv/bin/python3"));
}

TEST_F(FindPythonTest, IsNotBesideAProgramOutsideOfEnvironments) {
  Write("bin/hlaunch");
  EXPECT_EQ(PythonBeside(At("bin/hlaunch"), At("bin/hlaunch"), With({})), "");
  Write("venv/build/bin/hlaunch");  // A build inside of an environment's folder.
  const std::string built = At("venv/build/bin/hlaunch");
  EXPECT_EQ(PythonBeside(built, built, With({})), "");
}

}  // namespace
}  // namespace hlaunch
