// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/membership_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::Not;

absl::StatusOr<MembershipOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), {"hlaunch", "cluster"});
  return ParseMembershipOptions(static_cast<int>(words.size()), words.data());
}

// The error of these words.
std::string Trouble(const std::vector<const char*>& words) {
  const auto parsed = Parse(words);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(ParseMembershipOptions, ReadsInit) {
  EXPECT_EQ(Parse({"init"})->verb, ClusterVerb::kInit);
  EXPECT_EQ(Parse({"init"})->listen.port, 29401);
  EXPECT_EQ(Parse({"init"})->listen.host, "");
  EXPECT_EQ(Parse({"init", "--listen", "7000"})->listen.port, 7000);
  EXPECT_EQ(Parse({"init", "--listen", "7000"})->listen.host, "");
  EXPECT_EQ(Parse({"init", "--listen=10.0.0.1:7000"})->listen.host, "10.0.0.1");
  EXPECT_EQ(Parse({"init", "--listen=[fd00::1]"})->listen.host, "fd00::1");
  EXPECT_EQ(Parse({"init", "--listen=[fd00::1]"})->listen.port, 29401);
  EXPECT_EQ(Parse({"init", "--name", "Node0"})->name, "node0");
}

TEST(ParseMembershipOptions, ReadsJoin) {
  const auto join = Parse({"join", "node0", "--token", "hlj1.x"});
  ASSERT_TRUE(join.ok()) << join.status();
  EXPECT_EQ(join->verb, ClusterVerb::kJoin);
  EXPECT_EQ(join->head.host, "node0");
  EXPECT_EQ(join->head.port, 29401);
  EXPECT_EQ(join->token, "hlj1.x");
  EXPECT_EQ(Parse({"join", "node0:7000", "--token-file", "-"})->head.port, 7000);
  EXPECT_EQ(Parse({"join", "node0", "--token-file", "-"})->token_file, "-");
}

TEST(ParseMembershipOptions, ReadsTheOthers) {
  EXPECT_EQ(Parse({"token"})->verb, ClusterVerb::kToken);
  EXPECT_EQ(Parse({"throw-out", "node3"})->host, "node3");
  EXPECT_FALSE(Parse({"leave"})->end_cluster);
  EXPECT_TRUE(Parse({"leave", "--end-cluster"})->end_cluster);
  EXPECT_TRUE(Parse({"status", "--json"})->json);
  EXPECT_THAT(*Parse({"--help"})->text_to_print, HasSubstr("usage: hlaunch cluster init"));
  EXPECT_THAT(*Parse({"join", "-h"})->text_to_print, HasSubstr("usage: hlaunch cluster init"));
}

TEST(ParseMembershipOptions, SaysWhatIsWrong) {
  EXPECT_THAT(Trouble({}), HasSubstr("init, join, token"));
  EXPECT_THAT(Trouble({"frob"}), HasSubstr("./cluster"));
  EXPECT_THAT(Trouble({"init", "x"}), HasSubstr("expected: hlaunch cluster init"));
  EXPECT_THAT(Trouble({"init", "--token", "x"}), HasSubstr("takes no --token"));
  EXPECT_THAT(Trouble({"init", "--name", "a/b"}), HasSubstr("expected a host's name"));
  EXPECT_THAT(Trouble({"init", "--listen", "0"}), HasSubstr("--listen '0'"));
  EXPECT_THAT(Trouble({"init", "--listen", "a:b"}), HasSubstr("--listen 'a:b'"));
  EXPECT_THAT(Trouble({"join", "--token", "x"}), HasSubstr("join HEAD[:PORT] --token TOKEN"));
  EXPECT_THAT(Trouble({"join", "node0"}), HasSubstr("hlaunch cluster token"));
  EXPECT_THAT(Trouble({"join", "node0", "--token=x", "--token-file=y"}), HasSubstr("--token-file"));
  EXPECT_THAT(Trouble({"join", "node0:x", "--token=x"}), HasSubstr("the head 'node0:x'"));
  EXPECT_THAT(Trouble({"throw-out"}), HasSubstr("throw-out HOST"));
  EXPECT_THAT(Trouble({"throw-out", "../x"}), HasSubstr("expected a host's name"));
  EXPECT_THAT(Trouble({"leave", "--json"}), HasSubstr("takes no --json"));
}

TEST(ParseMembershipOptions, ShowsNoToken) {
  EXPECT_THAT(Trouble({"init", "--token", "hlj1.secret"}), Not(HasSubstr("secret")));
  EXPECT_THAT(Trouble({"join", "node0", "x", "--token", "hlj1.secret"}), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace hlaunch
