// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/jump_hosts.h"

#include <gtest/gtest.h>

namespace hlaunch {
namespace {

TEST(JumpHostOf, IsWhatTheWaysOfSeveralHostsHaveInCommon) {
  EXPECT_EQ(JumpHostOf("user me\nproxyjump bastion:2222,inner\n"), "bastion:2222");
  EXPECT_EQ(JumpHostOf("proxycommand ssh -W %h:%p gate\n"), "ssh -W %h:%p gate");
  EXPECT_EQ(JumpHostOf("user me\nproxycommand none\nproxyjump none\n"), "");
  EXPECT_EQ(JumpHostOf(""), "");
}

TEST(MayNameJumpHosts, LooksForProxiesAndOtherFiles) {
  EXPECT_TRUE(MayNameJumpHosts("Host c*\n  ProxyJump gate\n"));
  EXPECT_TRUE(MayNameJumpHosts("\tproxycommand=ssh gate nc %h 22\n"));
  EXPECT_TRUE(MayNameJumpHosts("Include work/*\n"));
  EXPECT_FALSE(MayNameJumpHosts("Include /etc/ssh/ssh_config.d/*.conf\nHost *\n# ProxyJump x\n"));
}

TEST(SettingsCommand, AsksSshWithTheWordsOfTheStart) {
  Starter starter;
  starter.ssh_words = {"-J", "gate"};
  TargetHost host;
  host.name = "c1";
  const auto words = SettingsCommand(starter, host);
  EXPECT_EQ(words[0], "ssh");
  EXPECT_EQ(words[1], "-G");
  EXPECT_EQ(words.back(), "c1");
}

}  // namespace
}  // namespace hlaunch
