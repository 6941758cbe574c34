// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/worker_argv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Argv = std::vector<std::string>;

// An empty working directory, and programs beside it: bin/python3, bin/tool, venv/bin/python.
class MakeWorkerArgvTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hlaunch_argv_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = std::filesystem::canonical(pattern);
    Write("bin/python3", "#!/bin/sh\n", 0755);
    Write("bin/tool", "#!/bin/sh\n", 0755);
    Write("venv/bin/python", "#!/bin/sh\n", 0755);
    std::filesystem::create_directories(root_ / "work");
    std::filesystem::current_path(root_ / "work");
  }
  void TearDown() override {
    std::filesystem::current_path("/");
    std::filesystem::remove_all(root_);
  }

  void Write(const std::string& path, const std::string& content, mode_t mode) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
    ASSERT_EQ(::chmod((root_ / path).c_str(), mode), 0);
  }

  std::string At(const std::string& path) const { return (root_ / path).string(); }

  absl::StatusOr<Argv> Make(const ScriptRequest& request, Argv more_env = {}) const {
    more_env.push_back("PATH=/nowhere:" + At("bin"));
    return MakeWorkerArgv(request, Environment(more_env));
  }

  std::filesystem::path root_;
};

TEST_F(MakeWorkerArgvTest, SeeksFilesInTheWorkersDirectory) {
  Write("there/train.py", "", 0644);
  Write("there/solver", "#!/bin/sh\n", 0755);
  const auto make = [this](const char* script, bool no_python) {
    ScriptRequest request{{script, "-x"}};
    request.no_python = no_python;
    request.directory = "../there";
    return Make(request);
  };
  const std::string there = At("work/../there");
  EXPECT_THAT(*make("train.py", false),
              ElementsAre(At("bin/python3"), "-u", there + "/train.py", "-x"));
  EXPECT_THAT(*make("./solver", true), ElementsAre(there + "/./solver", "-x"));
  EXPECT_THAT(*make("tool", true), ElementsAre(At("bin/tool"), "-x"));
  EXPECT_THAT(make("gone.py", false).status().message(), HasSubstr("there/gone.py"));
  EXPECT_EQ(*FindWorkersDirectory("../there"), there);
  EXPECT_EQ(FindWorkersDirectory("nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MakeWorkerArgvTest, RunsAPathWithPythonWhateverItIs) {
  Write("work/train", "#!/bin/sh\n", 0755);
  ScriptRequest request{{At("work/train"), "-x"}};
  request.no_python = request.run_path = true;
  EXPECT_THAT(*Make(request), ElementsAre(At("bin/python3"), "-u", At("work/train"), "-x"));
  request.command = {"tool"};  // Nothing is looked up in PATH.
  EXPECT_EQ(Make(request).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(MakeWorkerArgvTest, RunsAScriptUnbuffered) {
  Write("work/train.py", "print()\n", 0644);
  EXPECT_THAT(*Make({{"train.py", "--lr", ""}}),
              ElementsAre(At("bin/python3"), "-u", "train.py", "--lr", ""));
}

TEST_F(MakeWorkerArgvTest, RunsAnExecutablePyFileWithPythonToo) {
  Write("work/train.py", "#!/bin/false\n", 0755);
  EXPECT_EQ(Make({{"./train.py"}})->front(), At("bin/python3"));
}

TEST_F(MakeWorkerArgvTest, PrefersTheActiveEnvironment) {
  Write("work/train.py", "", 0644);
  EXPECT_EQ(Make({{"train.py"}}, {"VIRTUAL_ENV=" + At("venv")})->front(), At("venv/bin/python"));
  EXPECT_EQ(Make({{"train.py"}}, {"CONDA_PREFIX=" + At("venv")})->front(), At("venv/bin/python"));
  EXPECT_EQ(Make({{"train.py"}}, {"VIRTUAL_ENV=/gone"})->front(), At("bin/python3"));
  EXPECT_EQ(Make({{"train.py"}}, {"PYTHON_EXEC=tool", "VIRTUAL_ENV=" + At("venv")})->front(),
            At("bin/tool"));
}

TEST_F(MakeWorkerArgvTest, RefusesAnEnvironmentWhosePythonDoesNotRun) {
  Write("work/train.py", "", 0644);
  Write("old/bin/python", "#!/gone/python9\n", 0755);
  const absl::Status refused = Make({{"train.py"}}, {"VIRTUAL_ENV=" + At("old")}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(refused.message(),
            absl::StrCat("VIRTUAL_ENV is ", At("old"),
                         ", whose python does not run: ", At("old/bin/python"),
                         " needs /gone/python9, which is gone; activate "
                         "another environment, unset VIRTUAL_ENV, or set PYTHON_EXEC"));
  Write("locked/bin/python", "", 0644);
  EXPECT_FALSE(Make({{"train.py"}}, {"CONDA_PREFIX=" + At("locked")}).ok());
}

TEST_F(MakeWorkerArgvTest, NamesAMissingInterpreter) {
  Write("work/train.py", "", 0644);
  EXPECT_EQ(Make({{"train.py"}}, {"PYTHON_EXEC=/gone/python"}).status(),
            absl::NotFoundError(
                "PYTHON_EXEC is /gone/python, which is no program; correct it or unset it"));
  EXPECT_EQ(MakeWorkerArgv({{"train.py"}}, Environment({"PATH=/nowhere"})).status().message(),
            "no python3 in PATH; install it, set PYTHON_EXEC, or use --no-python for another "
            "program");
}

TEST_F(MakeWorkerArgvTest, RunsAModule) {
  EXPECT_THAT(*Make({{"pkg.train", "-m"}, true, false}),
              ElementsAre(At("bin/python3"), "-u", "-m", "pkg.train", "-m"));
}

TEST_F(MakeWorkerArgvTest, RunsAProgramAsItIs) {
  Write("work/run.sh", "#!/bin/sh\n", 0755);
  Write("work/train",
        "\x7f"
        "ELF\x02",
        0755);
  EXPECT_THAT(*Make({{"run.sh", "a"}}), ElementsAre("./run.sh", "a"));
  EXPECT_THAT(*Make({{"train"}}), ElementsAre("./train"));
  EXPECT_THAT(*Make({{At("work/train")}}), ElementsAre(At("work/train")));
}

TEST_F(MakeWorkerArgvTest, LooksUpAProgramInPath) {
  EXPECT_THAT(*Make({{"tool", "a"}}), ElementsAre(At("bin/tool"), "a"));
  EXPECT_THAT(*Make({{"tool", "a"}, false, true}), ElementsAre(At("bin/tool"), "a"));
}

TEST_F(MakeWorkerArgvTest, TakesFilesThatDoNotRunByThemselvesForPython) {
  Write("work/train", "import os\n", 0644);
  Write("work/mounted", "import os\n", 0755);
  Write("work/script", "#!/usr/bin/env python3\n", 0644);
  for (const char* name : {"train", "mounted", "script"}) {
    EXPECT_THAT(*Make({{name}}), ElementsAre(At("bin/python3"), "-u", name));
  }
}

TEST_F(MakeWorkerArgvTest, RunsADirectoryWithAMainFile) {
  Write("work/app/__main__.py", "", 0644);
  EXPECT_THAT(*Make({{"app"}}), ElementsAre(At("bin/python3"), "-u", "app"));
}

TEST_F(MakeWorkerArgvTest, RefusesADirectory) {
  std::filesystem::create_directories(root_ / "work/data");
  EXPECT_EQ(
      Make({{"data"}}).status(),
      absl::FailedPreconditionError("data is a directory, not a script; name the file in it"));
  EXPECT_EQ(Make({{"./data"}, false, true}).status(),
            absl::FailedPreconditionError("./data is a directory, not a program"));
}

TEST_F(MakeWorkerArgvTest, SaysWhereAMissingScriptWasLookedFor) {
  EXPECT_EQ(Make({{"gone.py"}}).status(),
            absl::NotFoundError("no such script: gone.py (in " + At("work") + ")"));
  Write("work/train.py", "", 0644);
  EXPECT_EQ(
      Make({{"train"}}).status(),
      absl::NotFoundError("no such script: train (in " + At("work") + "); did you mean train.py?"));
  Write("work/tools.sh", "#!/bin/sh\n", 0755);
  EXPECT_EQ(Make({{"tools.sh"}, false, true}).status(),
            absl::NotFoundError("no such program in PATH: tools.sh (in " + At("work") +
                                "); did you mean ./tools.sh?"));
}

TEST_F(MakeWorkerArgvTest, SaysHowToMakeItExecutable) {
  Write("work/run.sh", "#!/bin/sh\n", 0644);
  Write("work/prog",
        "\x7f"
        "ELF\x02",
        0644);
  const absl::Status expected =
      absl::PermissionDeniedError("run.sh is not executable; run: chmod +x run.sh");
  EXPECT_EQ(Make({{"run.sh"}}).status(), expected);
  EXPECT_THAT(std::string(Make({{"prog"}}).status().message()), HasSubstr("chmod +x prog"));
  EXPECT_EQ(Make({{"./run.sh"}, false, true}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(MakeWorkerArgvTest, RefusesAScriptItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  Write("work/train.py", "", 0000);
  EXPECT_EQ(Make({{"train.py"}}).status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace hlaunch
