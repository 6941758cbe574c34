// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/option_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/parse_options.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// Each found value as "--nnodes=2 (PET_NNODES)".
std::vector<std::string> Texts(const absl::StatusOr<std::vector<FoundValue>>& found) {
  EXPECT_TRUE(found.ok()) << found.status();
  std::vector<std::string> texts;
  if (!found.ok()) return texts;
  for (const FoundValue& value : *found) {
    texts.push_back(absl::StrCat(value.row->name, "=", value.value, " (", value.origin, ")"));
  }
  return texts;
}

std::vector<std::string> Texts(const absl::StatusOr<Config>& config) {
  if (config.ok()) return Texts(config->values);
  return Texts(absl::StatusOr<std::vector<FoundValue>>(config.status()));
}

absl::StatusOr<Options> Parse(std::vector<const char*> words, std::vector<std::string> env = {}) {
  words.insert(words.begin(), "hlaunch");
  return ParseOptions(static_cast<int>(words.size()), words.data(), Environment(std::move(env)));
}

std::string Error(std::vector<const char*> words, std::vector<std::string> env) {
  return std::string(Parse(std::move(words), std::move(env)).status().message());
}

std::string FileWith(const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/hlaunch_config_", ::getpid());
  std::ofstream(path) << text;
  return path;
}

TEST(FindInEnvironment, KnowsTorchrunsNames) {
  EXPECT_THAT(Texts(FindInEnvironment(Environment(
                  {"PET_NNODES=2:4", "PET_RDZV_ENDPOINT=n0:1", "PET_LOCAL_RANKS_FILTER=0",
                   "PET_STANDALONE=1", "PET_NO_PYTHON=0", "PET_SPARES=3", "PET_TEE="}))),
              UnorderedElementsAre(
                  "--nnodes=2:4 (PET_NNODES)", "--rdzv-endpoint=n0:1 (PET_RDZV_ENDPOINT)",
                  "--local-ranks-filter=0 (PET_LOCAL_RANKS_FILTER)",
                  "--standalone=true (PET_STANDALONE)", "--no-python=false (PET_NO_PYTHON)"));
}

TEST(FindInEnvironment, TakesTorchsOwnVariableForTheGrace) {
  EXPECT_THAT(Texts(FindInEnvironment(Environment({"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7"}))),
              ElementsAre("--shutdown-timeout=7 (TORCH_ELASTIC_SHUTDOWN_TIMEOUT)"));
  EXPECT_THAT(Texts(FindInEnvironment(
                  Environment({"TORCH_ELASTIC_SHUTDOWN_TIMEOUT=7", "PET_SHUTDOWN_TIMEOUT=8"}))),
              ElementsAre("--shutdown-timeout=8 (PET_SHUTDOWN_TIMEOUT)"));
}

TEST(ParseConfig, ReadsEveryKindOfValue) {
  EXPECT_THAT(
      Texts(ParseConfig(R"({
    // Comments may be there.
    "nnodes": "2:4", "nproc_per_node": 8, "join-timeout": 1.5, "module": true,
    "no_python": false, "pass_local_rank": "--local_rank", "keep-env": true,
    "local_ranks_filter": [0, 2], "duplicate_stdout_filters": ["a,b", "c"]})",
                        "f")),
      UnorderedElementsAre(
          "--nnodes=2:4 (f: nnodes)", "--nproc-per-node=8 (f: nproc_per_node)",
          "--join-timeout=1.5 (f: join-timeout)", "--module=true (f: module)",
          "--no-python=false (f: no_python)", "--pass-local-rank=--local_rank (f: pass_local_rank)",
          "--keep-env=true (f: keep-env)", "--local-ranks-filter=0,2 (f: local_ranks_filter)",
          "--duplicate-stdout-filters=a,,b,c (f: duplicate_stdout_filters)"));
  EXPECT_THAT(Texts(ParseConfig("{}", "f")), IsEmpty());
}

struct BadConfig {
  const char* text;
  const char* message;
};

class WrongConfig : public testing::TestWithParam<BadConfig> {};

TEST_P(WrongConfig, IsRefusedInOneLine) {
  const absl::Status status = ParseConfig(GetParam().text, "f").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

INSTANTIATE_TEST_SUITE_P(
    ParseConfig, WrongConfig,
    testing::Values(
        BadConfig{"", "f: line 1"}, BadConfig{"{\n\"nnodes\": 2,\n}", "f: line 3"},
        BadConfig{"[1]", "f: expected one JSON object, such as {\"nnodes\": 2}"},
        BadConfig{R"({"nnode": 2})", "f: nnode: unknown key; did you mean nnodes?"},
        BadConfig{R"({"zzzzzzzz": 2})", "f: zzzzzzzz: unknown key; keys are the options of"},
        BadConfig{R"({"nnodes=3": 2})", "f: nnodes=3: unknown key"},
        BadConfig{R"({"a\nb\u001b[2J": 2})", "unknown key"},
        BadConfig{R"({"help": true})", "f: help: is for the command line only"},
        BadConfig{R"({"config": "g"})", "f: config: is for the command line only"},
        BadConfig{R"({"r": 3})", "f: r: unknown key"}, BadConfig{R"({"": 3})", "unknown key"},
        BadConfig{R"({"rdzv_id": "a", "rdzv-id": "b"})", "f: rdzv-id: is there twice"},
        BadConfig{R"({"nnodes": true})", "f: nnodes: expected text, a number or a list of them"},
        BadConfig{R"({"nnodes": null})", "f: nnodes: expected text, a number or a list of them"},
        BadConfig{R"({"nnodes": {"min": 2}})", "f: nnodes: expected text, a number"},
        BadConfig{R"({"tee": [[3]]})", "f: tee: expected text or numbers in the list"},
        BadConfig{R"({"command": "train.py"})", "f: command: expected a list, the script first"},
        BadConfig{R"({"command": []})", "f: command: expected a list"},
        BadConfig{R"({"command": [""]})", "f: command: expected a list"},
        BadConfig{R"({"command": ["a", ["b"]]})", "f: command: expected a list"},
        BadConfig{R"({"comand": ["a"]})", "f: comand: unknown key; did you mean command?"},
        BadConfig{R"({"verbose": "yes"})", "f: verbose: expected true or false"},
        BadConfig{"{\"role\": \"\xff\"}", "f: line 1"}));

TEST(ParseConfig, EndsAtAnyDepth) {
  EXPECT_FALSE(ParseConfig(std::string(1'000'000, '['), "f").ok());
  EXPECT_FALSE(ParseConfig(absl::StrCat("{\"tee\": ", std::string(300'000, '['),
                                        std::string(300'000, ']'), "}"),
                           "f")
                   .ok());
}

TEST(ReadConfig, SaysWhyItCannotRead) {
  EXPECT_EQ(ReadConfig("/nowhere/f").status().message(),
            "cannot read the configuration /nowhere/f: No such file or directory");
  EXPECT_EQ(ReadConfig("/").status().message(), "cannot read the configuration /: Is a directory");
  const std::string path = FileWith(std::string((1 << 20) + 1, ' '));
  EXPECT_EQ(ReadConfig(path).status().message(), path + ": is larger than a mebibyte");
  ::unlink(path.c_str());
}

TEST(ParseOptions, TakesAListOfTheConfigForAnOptionThatRepeats) {
  const std::string path = FileWith(R"({"watch-log": ["fail:nan", "a,b"]})");
  const auto options = Parse({"--config", path.c_str(), "x"}, {});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->worker.line_rules.size(), 2u);
  EXPECT_EQ(options->worker.line_rules[1].pattern, "a,b");
  EXPECT_THAT(options->option_words,
              ElementsAre("hlaunch", "--config", path, "--watch-log=fail:nan", "--watch-log=a,b"));
  const auto typed = Parse({"--watch-log=c", "--config", path.c_str(), "x"}, {});
  ASSERT_EQ(typed->worker.line_rules.size(), 1u) << "what is typed beats the file";
  ::unlink(path.c_str());
}

TEST(ParseOptions, PrefersWhatIsTypedThenTheConfigThenVariables) {
  const std::string path =
      FileWith(R"({"nproc_per_node": 3, "max_restarts": 4, "keep-env": true, "no_python": false})");
  const auto options =
      Parse({"--nproc-per-node=2", "--config", path.c_str(), "x"},
            {"PET_NPROC_PER_NODE=9", "PET_MAX_RESTARTS=9", "PET_ROLE=env", "PET_NO_PYTHON=1"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->nproc, 2);
  EXPECT_EQ(options->policy.max_restarts, 4);
  EXPECT_EQ(options->worker.role, "env");
  EXPECT_TRUE(options->worker.keep_env);
  EXPECT_FALSE(options->script.no_python);
  EXPECT_THAT(
      options->sources,
      ElementsAre(absl::StrCat(path, ": max_restarts gives --max-restarts=4"),
                  "PET_ROLE gives --role=env", absl::StrCat(path, ": keep-env gives --keep-env")));
  // The words that a user on another host would have to type.
  EXPECT_THAT(options->option_words, ElementsAre("hlaunch", "--nproc-per-node=2", "--config", path,
                                                 "--max-restarts=4", "--role=env", "--keep-env"));
  ::unlink(path.c_str());
}

TEST(ParseOptions, TakesTheCommandOfAConfigWhereNoneIsTyped) {
  const std::string path = FileWith(R"({"nnodes": 2, "command": ["train.py", "--lr", 0.5, "-x"]})");
  const auto options = Parse({"--config", path.c_str()});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->script.command, ElementsAre("train.py", "--lr", "0.5", "-x"));
  EXPECT_EQ(options->policy.max_nodes, 2);
  EXPECT_THAT(Parse({"--config", path.c_str(), "other.py", "a"})->script.command,
              ElementsAre("other.py", "a"));
  ::unlink(path.c_str());
  const std::string without = FileWith(R"({"nnodes": 2})");
  EXPECT_THAT(Error({"--config", without.c_str()}, {}), HasSubstr("no script given"));
  ::unlink(without.c_str());
}

TEST(ParseOptions, TakesFalseOfAConfigForNotGiven) {
  const std::string path = FileWith(R"({"pass_local_rank": false, "standalone": false})");
  const auto options = Parse({"--config", path.c_str(), "x"}, {"PET_STANDALONE=1"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->script.local_rank_option, "");
  EXPECT_THAT(options->sources, IsEmpty());
  ::unlink(path.c_str());
}

TEST(ParseOptions, NamesTheVariableOrTheKeyThatIsWrong) {
  EXPECT_EQ(Error({"x"}, {"PET_NNODES=x"}),
            "PET_NNODES 'x': expected N or MIN:MAX from 1 to 65536, such as 2 or 1:4");
  EXPECT_EQ(Error({"x"}, {"PET_STANDALONE=yes"}), "PET_STANDALONE 'yes': expected 0 or 1");
  EXPECT_EQ(Error({"x"}, {"PET_NNODES=2", "PET_NODE_RANK=2", "PET_MASTER_ADDR=a"}),
            "--node-rank 2: with --nnodes 2 ranks go from 0 to 1 (--nnodes is from PET_NNODES, "
            "--node-rank is from PET_NODE_RANK)");
  const std::string path = FileWith(R"({"nnodes": 0})");
  EXPECT_EQ(
      Error({"--config", path.c_str(), "x"}, {}),
      absl::StrCat(path, ": nnodes '0': expected N or MIN:MAX from 1 to 65536, such as 2 or 1:4"));
  ::unlink(path.c_str());
}

TEST(ParseOptions, LetsAVariableWinNoQuarrelWithWhatIsTyped) {
  const auto alone = Parse({"--standalone", "x"}, {"PET_NNODES=2", "PET_NODE_RANK=1"});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->policy.max_nodes, 1);
  EXPECT_EQ(Parse({"--nnodes=2", "x"}, {"PET_STANDALONE=1"})->policy.max_nodes, 2);
  EXPECT_TRUE(Parse({"--module", "x"}, {"PET_NO_PYTHON=1"})->script.module);
  EXPECT_EQ(Error({"x"}, {"PET_MODULE=1", "PET_NO_PYTHON=1"}),
            "--module runs Python and --no-python runs none: leave one of them out (--module is "
            "from PET_MODULE, --no-python is from PET_NO_PYTHON)");
}

TEST(OptionTable, ExcludesOptionsThatThereAre) {
  for (const OptionRow& row : OptionTable()) {
    for (const absl::string_view other : absl::StrSplit(row.excludes, ' ', absl::SkipEmpty())) {
      ASSERT_NE(FindOption(other), nullptr) << row.name << " excludes " << other;
    }
  }
}

}  // namespace
}  // namespace hlaunch
