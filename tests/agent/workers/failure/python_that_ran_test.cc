// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/failure/python_that_ran.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// Two environments, env and other, each with bin/python.
class AddPythonThatRanTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hlaunch_ran_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = std::filesystem::canonical(pattern);
    for (const char* name : {"env", "other"}) {
      std::filesystem::create_directories(root_ / name / "bin");
      std::filesystem::create_symlink("/bin/true", root_ / name / "bin/python");
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string At(const std::string& path) const { return (root_ / path).string(); }

  // What is known of a worker of env's Python that prints `says` and fails.
  std::string Evidence(const std::string& says, std::vector<std::string> variables = {},
                       const std::string& known = "") const {
    WorkerSpec spec;
    spec.argv = {At("env/bin/python"), "-u", "train.py"};
    spec.inherited_env = std::move(variables);
    WorkerFailure failure;
    failure.log_tail = says;
    failure.evidence = known;
    Assignment assignment;
    assignment.world_size = 2;
    AddPythonThatRan(spec, assignment, failure);
    EXPECT_EQ(failure.kind == FailureKind::kImportFailed, failure.evidence != known);
    return failure.evidence;
  }

  std::filesystem::path root_;
};

TEST_F(AddPythonThatRanTest, NamesThePythonThatMissesAModule) {
  const std::string own = absl::StrCat("its Python is ", At("env/bin/python"));
  EXPECT_EQ(Evidence("ModuleNotFoundError: No module named 'torch'"), own);
  EXPECT_EQ(Evidence("/usr/bin/python: No module named train"), own);
  EXPECT_EQ(Evidence("ValueError: 7"), "");
  EXPECT_EQ(Evidence("ModuleNotFoundError: x", {}, "its card is lost"), "its card is lost");
}

TEST_F(AddPythonThatRanTest, SaysThatAVariableNamesAnotherEnvironment) {
  const std::string says = "ModuleNotFoundError: No module named 'torch'";
  const std::string own = absl::StrCat("its Python is ", At("env/bin/python"));
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    EXPECT_EQ(Evidence(says, {absl::StrCat(variable, "=", At("other"))}),
              absl::StrCat(own, "; ", variable, " is ", At("other"),
                           ", which has another one: PYTHON_EXEC=", At("other/bin/python"),
                           " names that"));
    EXPECT_EQ(Evidence(says, {absl::StrCat(variable, "=", At("env"))}), own);
    EXPECT_EQ(Evidence(says, {absl::StrCat(variable, "=", At("gone"))}), own);
  }
  EXPECT_EQ(Evidence(says, {"CONDA_PREFIX=" + At("other"), "VIRTUAL_ENV=" + At("env")}), own);
}

TEST_F(AddPythonThatRanTest, SaysNothingOfAProgramThatIsNoPython) {
  WorkerSpec spec;
  spec.argv = {"/bin/sh", "run.sh"};
  WorkerFailure failure;
  failure.log_tail = "ModuleNotFoundError: No module named 'torch'";
  Assignment assignment;
  assignment.world_size = 1;
  AddPythonThatRan(spec, assignment, failure);
  EXPECT_EQ(failure.evidence, "");
}

}  // namespace
}  // namespace hlaunch
