// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/hosts/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Shown(const absl::StatusOr<std::vector<TargetHost>>& hosts) {
  if (!hosts.ok()) return {std::string(hosts.status().message())};
  std::vector<std::string> shown;
  for (const TargetHost& host : *hosts) {
    shown.push_back(host.slots ? absl::StrCat(host.Login(), ":", *host.slots) : host.Login());
  }
  return shown;
}

TEST(ParseHosts, TakesNamesBracketsWorkersAndUsers) {
  EXPECT_THAT(Shown(ParseHosts("a,b:4,eva@c[01-02]:8")),
              ElementsAre("a", "b:4", "eva@c01:8", "eva@c02:8"));
  EXPECT_THAT(Shown(ParseHosts("10.0.0.1:2,[fd77::1]:3,fd77::2,[fe80::1%eth0]")),
              ElementsAre("10.0.0.1:2", "fd77::1:3", "fd77::2", "fe80::1%eth0"));
  EXPECT_THAT(Shown(ParseHosts(" a b\n,c ")), ElementsAre("a", "b", "c"));
}

TEST(ParseHosts, AHostThatComesTwiceHasTheWorkersOfBoth) {
  EXPECT_THAT(Shown(ParseHosts("a,b,a")), ElementsAre("a:2", "b"));
  EXPECT_THAT(Shown(ParseHosts("a:3,a:4,me@a")), ElementsAre("a:7", "me@a"));
}

TEST(ParseHosts, RefusesWhatNobodyMeans) {
  const struct {
    const char* text;
    const char* says;
  } kCases[] = {{"", "expected hosts"},
                {",", "expected hosts"},
                {"a:0", "how many workers"},
                {"a:x", "how many workers"},
                {"a:2222", "2222 workers on one host? If it is ssh's port, write Port 2222"},
                {"-oProxyCommand=x", "'-oProxyCommand=x'"},
                {"a;reboot", "'a;reboot'"},
                {"$(x)", "'$(x)'"},
                {"-x@a", "expected USER@HOST"},
                {"@a", "expected USER@HOST"},
                {"a@-b", "'a@-b'"},
                {"c[1-", ""},
                {"[fd77::1]x", "expected [ADDRESS]:N"}};
  for (const auto& each : kCases) {
    const auto hosts = ParseHosts(each.text);
    ASSERT_FALSE(hosts.ok()) << each.text;
    EXPECT_THAT(std::string(hosts.status().message()), HasSubstr(each.says)) << each.text;
  }
}

TEST(ParseHostfile, TakesWhatOtherLaunchersWrite) {
  EXPECT_THAT(Shown(ParseHostfile("# Open MPI\na slots=4 max_slots=8\nb slots=2 # two\n\n"
                                  "c:3\r\nd[1-2]\n\te\n",
                                  "hosts")),
              ElementsAre("a:4", "b:2", "c:3", "d1", "d2", "e"));
  // PBS repeats a host for each of its slots.
  EXPECT_THAT(Shown(ParseHostfile("a\na\nb\nb\n", "hosts")), ElementsAre("a:2", "b:2"));
}

TEST(ParseHostfile, NamesFileLineAndWord) {
  EXPECT_THAT(Shown(ParseHostfile("a\nb slots=none\n", "my/hosts")),
              ElementsAre(HasSubstr("my/hosts:2: 'slots=none'")));
  EXPECT_THAT(Shown(ParseHostfile("a\n\n# x\nb cpus=4\n", "hosts")),
              ElementsAre(HasSubstr("hosts:4: 'cpus=4': expected slots=N")));
  EXPECT_THAT(Shown(ParseHostfile("# none\n", "hosts")), ElementsAre("hosts names no host"));
}

TEST(FindHosts, IncludesAndExcludes) {
  HostWish wish;
  wish.hostfile = "f";
  const ReadTextFn read = [](const std::string&) { return "a slots=2\nb\nc[1-4]\n"; };
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre("a:2", "b", "c1", "c2", "c3", "c4"));
  wish.include = "c[1-3],a";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre("a:2", "c1", "c2", "c3"));
  wish.exclude = "c2";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre("a:2", "c1", "c3"));
  wish.exclude = "d";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre(HasSubstr("--exclude names d")));
  wish.hosts = "a";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre(HasSubstr("leave one of them out")));
}

}  // namespace
}  // namespace hlaunch
