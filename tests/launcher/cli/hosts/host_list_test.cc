// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/hosts/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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
  EXPECT_THAT(Shown(ParseHosts("DOM\\me+x@a-b_c.d")), ElementsAre("DOM\\me+x@a-b_c.d"));
  const std::string longest(255, 'n');
  EXPECT_THAT(Shown(ParseHosts(longest)), ElementsAre(longest));
}

TEST(ParseHosts, DividesNoListAtCommasAndBlanksInItsBrackets) {
  EXPECT_THAT(Shown(ParseHosts("n[1,3-4]:2,m")), ElementsAre("n1:2", "n3:2", "n4:2", "m"));
  EXPECT_THAT(Shown(ParseHosts("m n[1, 3]")), ElementsAre(HasSubstr("'n[1, 3]'")));
}

TEST(ParseHosts, TakesUpTo1024WorkersBehindAColon) {
  EXPECT_THAT(Shown(ParseHosts("a:1024")), ElementsAre("a:1024"));
  EXPECT_THAT(Shown(ParseHosts("a:1025")), ElementsAre(HasSubstr("1025 workers on one host?")));
}

TEST(ParseHosts, TakesAsManyHostsAsAJobMayHave) {
  EXPECT_EQ(ParseHosts("n[1-65535],m")->size(), kMaxHosts);
  EXPECT_THAT(Shown(ParseHosts("n[1-65535],m,o")), ElementsAre("'o': more than 65536"));
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
  EXPECT_THAT(Shown(ParseHostfile("a slots = 4\nb cpu= 2\nc count =3 max-slots=9\n", "hosts")),
              ElementsAre("a:4", "b:2", "c:3"));
  // PBS repeats a host for each of its slots.
  EXPECT_THAT(Shown(ParseHostfile("a\na\nb\nb\n", "hosts")), ElementsAre("a:2", "b:2"));
}

TEST(ParseHostfile, NamesFileLineAndWord) {
  EXPECT_THAT(Shown(ParseHostfile("a\nb slots=none\n", "my/hosts")),
              ElementsAre(HasSubstr("my/hosts:2: 'slots=none'")));
  EXPECT_THAT(Shown(ParseHostfile("a\n\n# x\nb cpus=4\n", "hosts")),
              ElementsAre(HasSubstr("hosts:4: 'cpus=4': expected slots=N")));
  EXPECT_THAT(Shown(ParseHostfile("# none\n", "hosts")), ElementsAre("hosts names no host"));
  EXPECT_THAT(Shown(ParseHostfile("b max_slots=none\n", "hosts")),
              ElementsAre("hosts:1: 'max_slots=none': expected a number from 1 to 100000"));
}

TEST(ParseHostfile, TheLargestNumberOfSlotsCountsWhereNoOtherIsGiven) {
  EXPECT_THAT(
      Shown(ParseHostfile("a max_slots=8\nb slots=2 max-slots=8\nc slots=100000\n", "hosts")),
      ElementsAre("a:8", "b:2", "c:100000"));
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

TEST(FindHosts, ANameWithoutAUserStandsForEachUserOfThatHost) {
  HostWish wish;
  wish.hosts = "me@a,you@a,b";
  const ReadTextFn read = [](const std::string&) { return ""; };
  wish.include = "a";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre("me@a", "you@a"));
  wish.include = "you@a";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre("you@a"));
  wish.include = "me@b";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre(HasSubstr("--include names me@b")));
  wish.include = "";
  wish.exclude = "a,b";
  EXPECT_THAT(Shown(FindHosts(wish, read)), ElementsAre("--exclude leaves no host"));
}

TEST(FindHosts, IncludesNoNumberOfWorkers) {
  HostWish wish;
  wish.hosts = "a:2,b";
  wish.include = "a:1";
  EXPECT_EQ(FindHosts(wish, nullptr).status().message(),
            "--include a:1: expected names; how many workers a host has says the list of hosts");
}

TEST(FindHosts, NumbersTheHostsAsTheyAreListedThoughSomeAreLeftOut) {
  HostWish wish;
  wish.hosts = "a,b,c";
  wish.exclude = "b";
  const auto hosts = FindHosts(wish, nullptr);
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ((*hosts)[0].number, 0);
  EXPECT_EQ((*hosts)[1].number, 2);
}

TEST(ReadTextFile, ReadsUpToFourMebibytes) {
  const std::string path = absl::StrCat(testing::TempDir(), "/hlaunch_hosts_", ::getpid());
  std::ofstream(path) << std::string(4 << 20, 'x');
  const auto whole = ReadTextFile(path);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->size(), size_t{4} << 20);
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_EQ(ReadTextFile(path).status().message(), path + " is larger than 4 MiB");
  std::filesystem::remove(path);
  EXPECT_EQ(ReadTextFile(path).status().message(), path + ": No such file or directory");
  EXPECT_EQ(ReadTextFile("/").status().message(), "/: Is a directory");
}

// The hosts of `text` with their part of `wish`, or the error.
std::vector<std::string> Divided(const HostWish& wish, absl::string_view text) {
  auto hosts = ParseHosts(text);
  if (!hosts.ok()) return {std::string(hosts.status().message())};
  const absl::Status status = DivideRanks(wish, *hosts);
  if (!status.ok()) return {std::string(status.message())};
  return Shown(hosts);
}

TEST(DivideRanks, GivesEachHostAsManyUnlessTheListCounts) {
  HostWish wish;
  wish.ranks = 5;
  EXPECT_THAT(Divided(wish, "a,b,c"), ElementsAre("a:2", "b:2", "c:1"));
  EXPECT_THAT(Divided(wish, "a:4,b,c"), ElementsAre("a:4", "b:1"));
  wish.ranks = 2;
  EXPECT_THAT(Divided(wish, "a,b,c"), ElementsAre("a:1", "b:1"));
  wish.ranks_of_each = 2;
  EXPECT_THAT(Divided(wish, "a:1,b"), ElementsAre("a:2"));
  wish.ranks_of_each = 0;
  wish.ranks_of_object = "1:socket";
  EXPECT_THAT(Divided(wish, "a:2,b"), ElementsAre("a:1", "b:1"));
}

TEST(DivideRanks, SaysHowManyWorkersTheHostsHaveRoomFor) {
  HostWish wish;
  wish.ranks = 3;
  wish.ranks_word = "-n";
  EXPECT_THAT(Divided(wish, "a:1"),
              ElementsAre(testing::StartsWith("-n 3: the hosts have room for 1 worker; write ")));
  wish.ranks_of_each = 1;
  EXPECT_THAT(Divided(wish, "a"), ElementsAre(HasSubstr("room for 1 worker, 1 host with ")));
  EXPECT_THAT(Divided(wish, "a,b"), ElementsAre(HasSubstr("room for 2 workers, 2 hosts with ")));
}

}  // namespace
}  // namespace hlaunch
