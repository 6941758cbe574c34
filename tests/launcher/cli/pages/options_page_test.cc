// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/pages/options_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launcher/cli/options/option_table.h"
#include "launcher/cli/pages/option_peers.h"

namespace hlaunch {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAreArray;

TEST(OptionPeers, AreOneForEachOption) {
  std::vector<std::string> options, peers;
  for (const OptionRow& row : OptionTable()) options.emplace_back(row.name);
  for (const OptionPeer& peer : OptionPeers()) peers.emplace_back(peer.name);
  EXPECT_THAT(peers, UnorderedElementsAreArray(options));
}

TEST(OptionPeers, SayWhatTorchrunHas) {
  for (const OptionPeer& peer : OptionPeers()) EXPECT_STRNE(peer.torchrun, "") << peer.name;
}

TEST(OptionsPage, HasALineForEachOptionAndTheHelpOfOtherCommands) {
  const std::string page = OptionsPage({{"hlaunch status", "usage: …\n"}});
  EXPECT_THAT(page, AllOf(StartsWith("# Options\n"),
                          HasSubstr("\n| `--nnodes N\\|MIN:MAX` | number of nodes (1) | same | "),
                          HasSubstr("\n| `-m`, `--module` | the script is a Python module's name | "
                                    "same | – |\n"),
                          HasSubstr("\n| `--print-env[=RANK]` | "), Not(HasSubstr("|  |")),
                          EndsWith("\n## hlaunch status\n\n```text\nusage: …\n```\n")));
}

}  // namespace
}  // namespace hlaunch
