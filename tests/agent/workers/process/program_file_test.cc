// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;

class ProgramFileTest : public testing::Test {
 protected:
  ProgramFileTest() { ::mkdir(directory_.c_str(), 0700); }
  ~ProgramFileTest() override {
    for (const char* name : {"program", "data"})
      ::unlink(absl::StrCat(directory_, "/", name).c_str());
    ::rmdir(directory_.c_str());
  }

  std::string Make(const std::string& name, const std::string& content, mode_t mode) const {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << content;
    ::chmod(path.c_str(), mode);
    return path;
  }

  const std::string directory_ = absl::StrCat(testing::TempDir(), "program_file.", ::getpid());
};

TEST_F(ProgramFileTest, SearchesThePathOfTheWorkersEnvironment) {
  const std::string path = Make("program", "", 0700);
  const auto found = FindProgram("program", {absl::StrCat("PATH=/no/such/place:", directory_)}, "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, path);
}

TEST_F(ProgramFileTest, SearchesBelowTheWorkingDirectoryForARelativePath) {
  Make("program", "", 0700);
  EXPECT_EQ(FindProgram("program", {"PATH=:/bin"}, directory_).value(), "./program");
}

TEST_F(ProgramFileTest, TakesANameWithASlashAsItIs) {
  EXPECT_EQ(FindProgram("./program", {"PATH=/bin"}, "").value(), "./program");
}

TEST_F(ProgramFileTest, NamesAFileThatMayNotBeExecuted) {
  Make("data", "", 0600);
  const auto found = FindProgram("data", {absl::StrCat("PATH=", directory_)}, "");
  EXPECT_EQ(found.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(found.status().message(), HasSubstr("chmod +x"));
}

TEST_F(ProgramFileTest, SaysWhyTheKernelRefused) {
  const std::string script = Make("program", "#!/no/such/python -u\n", 0700);
  const std::string data = Make("data", "text", 0700);
  struct Case {
    int error;
    std::string path;
    absl::StatusCode code;
    const char* words;
  };
  for (const Case& c : {
           Case{ENOENT, "/no/such/program", absl::StatusCode::kNotFound, "no such file"},
           Case{ENOENT, script, absl::StatusCode::kNotFound, "interpreter /no/such/python"},
           Case{ENOENT, data, absl::StatusCode::kNotFound, "program loader"},
           Case{ENOEXEC, data, absl::StatusCode::kPermissionDenied, "no #! line"},
           Case{EACCES, directory_, absl::StatusCode::kPermissionDenied, "not a file"},
           Case{E2BIG, data, absl::StatusCode::kInvalidArgument, "more than the kernel takes"},
           Case{EAGAIN, data, absl::StatusCode::kResourceExhausted, "temporarily unavailable"},
       }) {
    const absl::Status status = ExecError(c.error, c.path, "");
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(status.message(), HasSubstr(c.words));
  }
}

}  // namespace
}  // namespace hlaunch
