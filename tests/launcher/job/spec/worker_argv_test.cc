// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/worker_argv.h"

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

// An empty working directory, and programs beside it: bin/python3 and bin/tool.
class MakeWorkerArgvTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hlaunch_argv_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = std::filesystem::canonical(pattern);
    Write("bin/python3", "#!/bin/sh\n", 0755);
    Write("bin/tool", "#!/bin/sh\n", 0755);
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

TEST_F(MakeWorkerArgvTest, RefusesAPipeAndReadsNothingOfIt) {
  ASSERT_EQ(::mkfifo(At("work/train.py").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo(At("work/tool").c_str(), 0700), 0);
  for (const ScriptRequest& request : {ScriptRequest{{"train.py"}}, ScriptRequest{{"./tool"}},
                                       ScriptRequest{{"./tool"}, false, true}}) {
    const auto argv = Make(request);
    EXPECT_TRUE(absl::IsFailedPrecondition(argv.status())) << argv.status();
    EXPECT_THAT(argv.status().message(), HasSubstr("is a pipe, which can be read once"));
  }
}

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

TEST_F(MakeWorkerArgvTest, RunsAModule) {
  EXPECT_THAT(*Make({{"pkg.train", "-m"}, true, false}),
              ElementsAre(At("bin/python3"), "-u", "-m", "pkg.train", "-m"));
}

TEST_F(MakeWorkerArgvTest, RefusesTheFileOfAScriptAsAModule) {
  Write("work/w.py", "", 0644);
  Write("work/a/b.py", "", 0644);
  const auto refusal = [this](const char* module) {
    return std::string(Make(ScriptRequest{{module}, true}).status().message());
  };
  EXPECT_EQ(refusal("w.py"),
            "-m w.py: that is a file, and -m takes a module's name; leave -m out, or write -m w");
  EXPECT_THAT(refusal("a/b.py"), HasSubstr("write -m a.b"));
  EXPECT_EQ(refusal("no.py"), "") << "it may be a module";
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

// It ran whichever python3 was in PATH, and not the one of PYTHON_EXEC or beside hlaunch.
TEST_F(MakeWorkerArgvTest, ChoosesThePythonThatAFirstLineLeavesToPath) {
  Write("chosen/python", "#!/bin/sh\n", 0755);
  const std::string chosen = At("chosen/python");
  const auto make = [&](const std::string& line, const char* name) {
    Write("work/train", line + "\nprint()\n", 0755);
    Write("bin/trainer", line + "\nprint()\n", 0755);
    return *Make({{name, "-x"}}, {"PYTHON_EXEC=" + chosen});
  };
  EXPECT_THAT(make("#!/usr/bin/env python3", "train"), ElementsAre(chosen, "-u", "train", "-x"));
  EXPECT_THAT(make("#! /usr/bin/env  python", "./train").front(), chosen);
  EXPECT_THAT(make("#!/usr/bin/env -S python3 -O -X dev", "train"),
              ElementsAre(chosen, "-u", "-O", "-X", "dev", "train", "-x"));
  EXPECT_THAT(make("#!/usr/bin/env python3", "trainer"),
              ElementsAre(chosen, "-u", At("bin/trainer"), "-x"));
  for (const char* own : {"#!/opt/venv/bin/python3", "#!/usr/bin/env python3.9",
                          "#!/usr/bin/env -S A=1 python3", "#!/usr/bin/env -S python3 '-O'",
                          "#!/usr/bin/env", "#!/usr/bin/env -S", "#!/bin/sh python3"}) {
    EXPECT_THAT(make(own, "train"), ElementsAre("./train", "-x")) << own;
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

TEST_F(MakeWorkerArgvTest, NamesTheFileThatIsNearToAMisspeltOne) {
  const auto hint = [this](const std::string& script) {
    const std::string message(Make({{script}}).status().message());
    const size_t at = message.find("); ");
    return at == std::string::npos ? "" : message.substr(at + 3);
  };
  Write("work/train.py", "", 0644);
  Write("work/src/train_gpt.py", "", 0644);
  Write("work/trian.txt", "", 0644);
  std::filesystem::create_directories(root_ / "work/trian2.py");
  EXPECT_EQ(hint("trian.py"), "did you mean train.py?");
  EXPECT_EQ(hint("./trian.py"), "did you mean ./train.py?");
  EXPECT_EQ(hint("src/trian_gpt.py"), "did you mean src/train_gpt.py?");
  EXPECT_EQ(hint("trian"), "did you mean train.py?");
  EXPECT_EQ(hint("evaluate.py"), "");
  EXPECT_EQ(hint("nowhere/train.py"), "");
}

TEST_F(MakeWorkerArgvTest, NamesTheRightWordForThoseOfOtherPrograms) {
  const auto says = [this](const char* word) {
    return std::string(Make({{word, "train.py"}}).status().message());
  };
  Write("work/train.py", "", 0644);
  for (const char* word : {"run", "start", "launch"}) {
    EXPECT_EQ(says(word), absl::StrCat("no such script: ", word, " (in ", At("work"),
                                       "); hlaunch needs no such word before the script: leave it "
                                       "out"));
  }
  EXPECT_THAT(says("jobs"), HasSubstr("did you mean hlaunch ps?"));
  EXPECT_THAT(says("list"), HasSubstr("did you mean hlaunch ps?"));
  EXPECT_THAT(says("statu"), HasSubstr("did you mean hlaunch status?"));
  Write("work/run", "import os\n", 0644);
  EXPECT_THAT(*Make({{"run", "train.py"}}),
              ElementsAre(At("bin/python3"), "-u", "run", "train.py"));
}

TEST_F(MakeWorkerArgvTest, RefusesANotebook) {
  Write("work/my train.ipynb", "{}", 0644);
  EXPECT_EQ(Make({{"my train.ipynb"}}).status(),
            absl::FailedPreconditionError(
                "my train.ipynb is a notebook, not a script; run: jupyter nbconvert --to script "
                "'my train.ipynb', and start what that writes, my train.py"));
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
