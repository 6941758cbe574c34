// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/check_python.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

ToolOutput Said(const std::string& text, const std::string& problem = "") {
  ToolOutput output;
  output.text = text;
  output.problem = problem;
  return output;
}

TEST(PythonResult, NamesThePythonAndItsTorch) {
  const CheckResult result =
      PythonResult("/env/bin/python3", Said("hello from sitecustomize\n"
                                            "hlaunch's answer: 3.11.2 2.5.1+cpu\n"));
  EXPECT_EQ(result.state, CheckState::kOk);
  EXPECT_EQ(result.reason, "/env/bin/python3 is Python 3.11.2, with torch 2.5.1+cpu");
  const auto detail = nlohmann::json::parse(result.detail);
  EXPECT_EQ(detail["path"], "/env/bin/python3");
  EXPECT_EQ(detail["version"], "3.11.2");
  EXPECT_EQ(detail["torch"], "2.5.1+cpu");
}

TEST(PythonResult, NamesWhatCanBePreloaded) {
  const CheckResult result = PythonResult(
      "/p", Said("hlaunch's answer: 3.11.2 2.14.1\nhlaunch's list: numpy torch\nbye\n"));
  EXPECT_EQ(result.reason,
            "/p is Python 3.11.2, with torch 2.14.1; --preload auto can import numpy, torch");
  const auto preload = nlohmann::json::parse(result.detail)["preload"];
  EXPECT_EQ(preload, nlohmann::json({"numpy", "torch"}));
}

TEST(PythonResult, SaysWhoRunsTheJobsOfTorchsAgent) {
  const CheckResult result = PythonResult("/p", Said("hlaunch's answer: 3.11.2 2.15.0 adopted\n"));
  EXPECT_EQ(result.reason,
            "/p is Python 3.11.2, with torch 2.15.0, whose agent's jobs hlaunch runs");
  EXPECT_EQ(nlohmann::json::parse(result.detail)["adopted"], true);
}

TEST(PythonResult, WarnsOfAdoptedLinksThatAnUpgradeHasReplaced) {
  const CheckResult result =
      PythonResult("/p", Said("hlaunch's answer: 3.11.2 2.15.0 adopted\n"
                              "hlaunch's torchrun: /env/bin/torchrun\n"
                              "hlaunch's lost links: torchrun deepspeed\nhlaunch's list: torch\n"));
  EXPECT_EQ(result.state, CheckState::kWarn);
  EXPECT_EQ(
      result.reason,
      "/p is Python 3.11.2, with torch 2.15.0, whose agent's jobs hlaunch runs; --preload auto "
      "can import torch; torchrun and deepspeed were links to hlaunch and are not any more");
  EXPECT_NE(result.advice, "");
}

TEST(PythonResult, NamesATorchrunThatIsNotHlaunch) {
  const std::string said =
      "hlaunch's torchrun: /my env/torchrun\nhlaunch's lost links: \nhlaunch's list: \n";
  const CheckResult adopted =
      PythonResult("/p", Said("hlaunch's answer: 3.11.2 2.15.0 adopted\n" + said));
  EXPECT_EQ(adopted.state, CheckState::kOk);
  EXPECT_EQ(adopted.reason,
            "/p is Python 3.11.2, with torch 2.15.0, whose agent's jobs hlaunch runs; torchrun in "
            "PATH is not hlaunch: /my env/torchrun");
  const CheckResult not_wanted =
      PythonResult("/p", Said("hlaunch's answer: 3.11.2 2.15.0 \n" + said));
  EXPECT_EQ(not_wanted.reason, "/p is Python 3.11.2, with torch 2.15.0");
}

TEST(PythonResult, SaysThatThereIsNoTorch) {
  const CheckResult result = PythonResult("/p", Said("hlaunch's answer: 3.11.2 \n"));
  EXPECT_EQ(result.reason, "/p is Python 3.11.2, without torch");
  EXPECT_TRUE(nlohmann::json::parse(result.detail)["torch"].is_null());
}

TEST(PythonResult, IsUnknownIfItDoesNotAnswer) {
  const CheckResult late = PythonResult("/p", Said("", "it did not end within 10 s"));
  EXPECT_EQ(late.state, CheckState::kUnknown);
  EXPECT_EQ(late.reason, "/p does not say its version: it did not end within 10 s");
  EXPECT_EQ(PythonResult("/p", Said("hello\n")).reason, "/p does not say its version");
}

}  // namespace
}  // namespace hlaunch
