// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/page_server.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/ip/tcp.hpp"
#include "asio/read.hpp"
#include "asio/write.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rendezvous/net/trust/page_password.h"
#include "tests/launcher/report/status/jobs_to_see.h"

namespace hlaunch {
namespace {

using asio::ip::tcp;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

HttpQuestion Ask(const std::string& path, const std::string& host = "localhost") {
  HttpQuestion question = {200, false, path};
  question.host = host;
  return question;
}

int StatusOf(const HttpQuestion& question, const PageRules& rules) {
  const std::optional<HttpAnswer> refusal = RefuseVisitor(question, rules);
  return refusal ? refusal->status : 200;
}

TEST(RefuseVisitor, TakesAddressesAndNamesOfThisHost) {
  const PageRules rules = {{"node0"}, ""};
  for (const char* host : {"localhost", "LOCALHOST:9400", "127.0.0.1:9400", "[::1]:9400", "[::1]",
                           "10.0.0.7", "node0", "Node0:80"}) {
    EXPECT_EQ(StatusOf(Ask("/", host), rules), 200) << host;
  }
  for (const char* host : {"", "evil.example", "evil.example:9400", "node0.evil.example",
                           "127.0.0.1.evil.example", "localhost.evil", "[::1", "node1"}) {
    EXPECT_EQ(StatusOf(Ask("/", host), rules), 421) << host;
  }
}

TEST(RefuseVisitor, TellsPagesOfOtherSitesNothing) {
  const auto from = [](const std::string& origin) {
    HttpQuestion question = Ask("/", "localhost:9400");
    question.origin = origin;
    return StatusOf(question, {});
  };
  EXPECT_EQ(from("http://localhost:9400"), 200);
  for (const char* origin : {"http://evil.example", "null", "https://localhost:9400",
                             "http://localhost:9401", "http://localhost"}) {
    EXPECT_EQ(from(origin), 403) << origin;
  }
}

TEST(RefuseVisitor, AsksForThePassword) {
  const PageRules rules = {{}, "0f1e"};
  const auto with = [&](const std::string& authorization) {
    HttpQuestion question = Ask("/");
    question.authorization = authorization;
    return StatusOf(question, rules);
  };
  EXPECT_EQ(with("Bearer 0f1e"), 200);
  EXPECT_EQ(with("basic " + absl::Base64Escape("me:0f1e")), 200);
  for (const std::string& wrong :
       {std::string(), std::string("Bearer"), std::string("Bearer 0f1"),
        std::string("Bearer 0f1e2"), std::string("Basic 0f1e"),
        "Basic " + absl::Base64Escape("0f1e"), "Basic " + absl::Base64Escape("0f1e:"),
        std::string("Digest 0f1e")}) {
    EXPECT_EQ(with(wrong), 401) << wrong;
  }
  const HttpAnswer refusal = *RefuseVisitor(Ask("/"), rules);
  EXPECT_THAT(refusal.headers.back(), StartsWith("WWW-Authenticate: Basic"));
}

TEST(StatusPages, OfAServiceListAndShowJobs) {
  StatusPages::Source source;
  source.job = [](const std::string& id) -> std::optional<JobStatus> {
    if (id != "a/b") return std::nullopt;
    return RestartedJob();
  };
  source.jobs = [] {
    JobStatus job = RestartedJob();
    job.job_id = "a/b";
    return std::vector<JobStatus>{job};
  };
  StatusPages pages({}, source);
  const HttpAnswer list = pages.Answer(Ask("/"), Instant(), kNoon);
  EXPECT_THAT(list.body, HasSubstr("href=\"/jobs/a%2Fb\""));
  const HttpAnswer page = pages.Answer(Ask("/jobs/a%2Fb"), Instant(), kNoon);
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("<title>"));
  EXPECT_THAT(page.headers, testing::Contains(HasSubstr("frame-ancestors 'none'")));
  EXPECT_THAT(page.headers, testing::Contains("X-Content-Type-Options: nosniff"));
  for (const char* path : {"/jobs/", "/jobs/none", "/jobs/%", "/jobs/a%2Fb/", "/../etc", "/x"}) {
    EXPECT_EQ(pages.Answer(Ask(path), Instant(), kNoon).status, 404) << path;
  }
}

TEST(StatusPages, AreMadeOnceASecondHoweverManyAsk) {
  int made = 0;
  StatusPages::Source source;
  source.job = [&](const std::string&) {
    ++made;
    return RestartedJob();
  };
  StatusPages pages({}, source);
  const Instant now{};
  for (int i = 0; i < 100; ++i) pages.Answer(Ask("/"), now, kNoon);
  EXPECT_EQ(made, 1);
  pages.Answer(Ask("/"), now + std::chrono::seconds(1), kNoon);
  EXPECT_EQ(made, 2);
}

TEST(StatusPages, SayWhereAJobIsThatIsDecidedElsewhere) {
  StatusPages::Source source;
  source.job = [](const std::string&) -> std::optional<JobStatus> { return std::nullopt; };
  source.elsewhere = "it is elsewhere";
  StatusPages pages({}, source);
  EXPECT_EQ(pages.Answer(Ask("/"), Instant(), kNoon).status, 503);
  EXPECT_EQ(pages.Answer(Ask("/"), Instant(), kNoon).body, "it is elsewhere\n");
}

TEST(StatusPages, SayWhichServiceLeads) {
  StatusPages::Source source;
  source.jobs = [] { return std::vector<JobStatus>(); };
  source.stands_by = [] { return "head1:29400 leads"; };
  StatusPages pages({}, source);
  EXPECT_EQ(pages.Answer(Ask("/"), Instant(), kNoon).status, 503);
  EXPECT_EQ(pages.Answer(Ask("/jobs/a"), Instant(), kNoon).body, "head1:29400 leads\n");
}

std::string Exchange(uint16_t port, const std::string& request) {
  asio::io_context loop;
  tcp::socket socket(loop);
  socket.connect({asio::ip::make_address("127.0.0.1"), port});
  asio::error_code ignored;
  asio::write(socket, asio::buffer(request), ignored);
  std::string response;
  asio::read(socket, asio::dynamic_buffer(response), ignored);
  return response;
}

StatusPages::Source OneJob() {
  StatusPages::Source source;
  source.job = [](const std::string&) { return RestartedJob(); };
  return source;
}

TEST(PageServer, AnswersWhoMayAskAndNobodyElse) {
  const auto server =
      PageServer::Start({"127.0.0.1", 0}, "", PageServer::Audience::kOwnUser, OneJob());
  ASSERT_TRUE(server.ok()) << server.status();
  const uint16_t port = (*server)->port();
  const auto first_line = [&](const std::string& request) {
    return Exchange(port, request).substr(0, 12);
  };
  EXPECT_THAT(Exchange(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("train-17"),
                             HasSubstr("\r\nContent-Security-Policy: default-src 'none'")));
  EXPECT_EQ(first_line("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 200");
  EXPECT_EQ(first_line("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 405");
  EXPECT_EQ(first_line("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "HTTP/1.1 421");
  EXPECT_EQ(first_line("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 421");
  EXPECT_EQ(first_line("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"),
            "HTTP/1.1 400");
  EXPECT_EQ(first_line("GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n"),
            "HTTP/1.1 403");
  EXPECT_EQ(first_line(absl::StrCat(
                "GET / HTTP/1.1\r\nHost: localhost\r\nA: ", std::string(1 << 20, 'a'), "\r\n\r\n")),
            "HTTP/1.1 431");
}

// The first bytes of the answer that a process of another user gets.
std::string AskAsAnotherUser(uint16_t port) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const bool other = ::setresuid(54321, 54321, 54321) == 0;
    const std::string heard =
        other ? Exchange(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") : "the same user";
    ::_exit(::write(ends[1], heard.data(), 12) == 12 ? 0 : 1);
  }
  ::close(ends[1]);
  std::string heard(12, '\0');
  const ssize_t size = ::read(ends[0], heard.data(), heard.size());
  heard.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return heard;
}

TEST(PageServer, OfAJobWithoutATokenAnswersNoOtherUserOfTheHost) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const auto of = [](const std::string& token, PageServer::Audience audience) {
    const auto server = PageServer::Start({"127.0.0.1", 0}, token, audience, OneJob());
    return AskAsAnotherUser((*server)->port());
  };
  EXPECT_EQ(of("", PageServer::Audience::kOwnUser), "HTTP/1.1 403");
  EXPECT_EQ(of("", PageServer::Audience::kThisHost), "HTTP/1.1 200");
  EXPECT_EQ(of(kToken, PageServer::Audience::kOwnUser), "HTTP/1.1 401");
}

TEST(PageServer, ClosesWhoIsTooSlow) {
  const auto server =
      PageServer::Start({"127.0.0.1", 0}, "", PageServer::Audience::kOwnUser, OneJob());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(Exchange((*server)->port(), "GET / HTTP/1.1\r\nHost: loc"), "");
}

TEST(PageServer, WithATokenAsksForWhatIsMadeOfIt) {
  const auto server =
      PageServer::Start({"127.0.0.1", 0}, kToken, PageServer::Audience::kOwnUser, OneJob());
  ASSERT_TRUE(server.ok()) << server.status();
  const auto with = [&](const std::string& secret) {
    return Exchange((*server)->port(),
                    absl::StrCat("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ",
                                 secret, "\r\n\r\n"));
  };
  EXPECT_THAT(with(PagePassword(kToken)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(with(kToken), StartsWith("HTTP/1.1 401"));
  EXPECT_EQ(PagePassword(kToken).size(), 32u);
  EXPECT_NE(PagePassword(kToken), PagePassword("another"));
}

TEST(PageServer, WithoutATokenServesThisHostAlone) {
  const auto server =
      PageServer::Start({"0.0.0.0", 0}, "", PageServer::Audience::kOwnUser, OneJob());
  EXPECT_EQ(server.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(
      PageServer::Start({"0.0.0.0", 0}, kToken, PageServer::Audience::kOwnUser, OneJob()).ok());
}

}  // namespace
}  // namespace hlaunch
