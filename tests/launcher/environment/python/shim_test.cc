// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/python/shim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "launcher/environment/python/files.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
namespace fs = std::filesystem;

// Small copies of the programs that choose versions. Each looks for FILE in the directory and those
// above it, as the real ones do, and sets what the real ones set.
std::string Chooser(const std::string& file, const std::string& versions, const char* then) {
  return absl::StrCat("folder=$PWD\nwhile [ ! -f \"$folder/", file,
                      "\" ]; do\n  [ -n \"$folder\" ] || { echo no version >&2; exit 126; }\n"
                      "  folder=${folder%/*}\ndone\nread -r tool version < \"$folder/",
                      file, "\"\nexport PATH=\"", versions, "/$version/bin:$PATH\"\n", then);
}

// Directories one/ and two/ that ask for Python 1 and 2, each for every shim, and none/.
class ShimTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hlaunch_shim_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = fs::canonical(pattern);
    for (const auto& [folder, version] : {std::pair("one", "1"), std::pair("two/deep", "2")}) {
      fs::create_directories(root_ / folder);
      fs::create_directories(root_ / "versions" / version / "bin");
      fs::create_symlink(*FindInPath("python3", Environment::OfThisProcess()),
                         absl::StrCat(At("versions/"), version, "/bin/python3"));
    }
    for (const char* file : {".tool-versions", ".python-version", "mise.toml"}) {
      std::ofstream(root_ / "one" / file) << "python 1\n";
      std::ofstream(root_ / "two" / file) << "python 2\n";
    }
    fs::create_directories(root_ / "none");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& content) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
    ASSERT_EQ(::chmod((root_ / path).c_str(), 0755), 0);
  }
  std::string At(const std::string& path) const { return (root_ / path).string(); }

  // asdf's shim names the program: `asdf exec`, which a program in PATH does.
  std::string Asdf() const {
    Write("bin/asdf", absl::StrCat("#!/bin/sh\nshift\n",
                                   Chooser(".tool-versions", At("versions"),
                                           "export ASDF_INSTALL_VERSION=$version\nexec \"$@\"\n")));
    Write("asdf/shims/python3",
          "#!/bin/sh\n# asdf-plugin: python 1\nexec asdf exec \"python3\" \"$@\"\n");
    return At("asdf/shims/python3");
  }
  // pyenv's shim names the path of pyenv.
  std::string Pyenv() const {
    Write("pyenv/bin/pyenv", absl::StrCat("#!/bin/sh\nshift\ncd \"${PYENV_DIR:-.}\"\n",
                                          Chooser(".python-version", At("versions"),
                                                  "export PYENV_VERSION=$version\nexec \"$@\"\n")));
    Write("pyenv/shims/python3",
          absl::StrCat("#!/bin/sh\nexport PYENV_ROOT=", At("pyenv"), "\nexec ",
                       At("pyenv/bin/pyenv"), " exec \"${0##*/}\" \"$@\"\n"));
    return At("pyenv/shims/python3");
  }
  // mise's shim is a link to mise, which looks at the name by which it was called.
  std::string Mise() const {
    Write("bin/mise", absl::StrCat("#!/bin/sh\n", Chooser("mise.toml", At("versions"),
                                                          "export MISE_ENV_OF_THE_PROJECT=1\n"
                                                          "exec \"${0##*/}\" \"$@\"\n")));
    fs::create_directories(root_ / "links");
    fs::create_symlink(At("bin/mise"), root_ / "links/python3");
    return At("links/python3");
  }
  absl::StatusOr<ShimChoice> Ask(const std::string& shim, const std::string& folder) const {
    return AskShim(
        shim, At(folder),
        Environment({absl::StrCat("PATH=", At("bin"), ":/usr/bin:/bin"), "HOME=/nowhere"}));
  }

  fs::path root_;
};

TEST_F(ShimTest, TellsWhatAShimRunsInADirectory) {
  struct {
    std::string shim;
    const char* variable;
  } const rows[] = {{Asdf(), "ASDF_INSTALL_VERSION="},
                    {Pyenv(), "PYENV_VERSION="},
                    {Mise(), "MISE_ENV_OF_THE_PROJECT=1"}};
  for (const auto& row : rows) {
    EXPECT_TRUE(IsShim(row.shim)) << row.shim;
    for (const auto& [folder, version] : {std::pair("one", "1"), std::pair("two/deep", "2")}) {
      const auto choice = Ask(row.shim, folder);
      ASSERT_TRUE(choice.ok()) << choice.status();
      const std::string bin = absl::StrCat(At("versions/"), version, "/bin");
      EXPECT_EQ(choice->python, bin + "/python3");
      EXPECT_THAT(choice->variables,
                  AllOf(Contains(StartsWith(row.variable)),
                        Contains(absl::StrCat("PATH=", bin, ":", At("bin"), ":/usr/bin:/bin")),
                        Not(Contains(StartsWith("PWD="))), Not(Contains(StartsWith("HOME=")))));
    }
  }
}

TEST_F(ShimTest, RefusesOneThatRunsNoPythonThere) {
  EXPECT_THAT(Ask(Asdf(), "none").status().message(),
              AllOf(HasSubstr("/asdf/shims/python3 is a shim, which runs no Python in "),
                    HasSubstr("/none (exit code 126): run it there to see why")));
}

// The path of a Python in a container means nothing here.
TEST_F(ShimTest, LeavesOtherWrappersAlone) {
  Write("bin/python3", "#!/bin/sh\nexec apptainer exec image.sif python3 \"$@\"\n");
  EXPECT_FALSE(IsShim(At("bin/python3")));
  EXPECT_FALSE(IsShim(At("versions/1/bin/python3")));
  EXPECT_FALSE(IsShim(At("nothing/python3")));
}

}  // namespace
}  // namespace hlaunch
