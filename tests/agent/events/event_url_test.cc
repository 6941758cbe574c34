// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/events/event_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ParseEventUrl, TakesNamesPortsAndAddresses) {
  const auto named = ParseEventUrl("http://hooks.example:8080/7?to=me#there");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->host, "hooks.example");
  EXPECT_EQ(named->port, 8080);
  EXPECT_EQ(named->target, "/7?to=me");
  EXPECT_EQ(ParseEventUrl("http://hooks")->port, 80);
  EXPECT_EQ(ParseEventUrl("http://hooks")->target, "/");
  EXPECT_EQ(ParseEventUrl("http://hooks?a")->target, "/?a");
  EXPECT_EQ(ParseEventUrl("http://[fd00::1]:81/a")->host, "fd00::1");
}

TEST(ParseEventUrl, RefusesWhatIsNone) {
  for (const char* wrong :
       {"", "http://", "http:///a", "ftp://a/", "http://a:0/", "http://a:99999/", "http://a:b/",
        "http://a b/", "http://a/b c", "http://a/\r\nX: y", "http://[fd00::1", "http://[hooks]/",
        "http://a[b]/", "http://[::1]x/"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseEventUrl(wrong).status())) << wrong;
  }
}

TEST(ParseEventUrl, NamesTheWayOutWhereItCannotHelp) {
  EXPECT_THAT(std::string(ParseEventUrl("https://hooks.example/7").status().message()),
              HasSubstr("curl"));
  EXPECT_THAT(std::string(ParseEventUrl("http://me:secret@hooks.example/").status().message()),
              HasSubstr("password"));
}

TEST(PostOfEvent, IsOneRequestWithTheWholeEvent) {
  const std::string request = PostOfEvent({"hooks", 80, "/7"}, "{\"a\":1}\n");
  EXPECT_THAT(request, StartsWith("POST /7 HTTP/1.1\r\nHost: hooks\r\n"));
  EXPECT_THAT(request, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_THAT(request, EndsWith("\r\n\r\n{\"a\":1}\n"));
  EXPECT_THAT(PostOfEvent({"fd00::1", 81, "/"}, ""), HasSubstr("Host: [fd00::1]:81\r\n"));
}

TEST(ReadPostAnswer, TellsWhatMayHelpTheNextTime) {
  const auto answered = [](int code) {
    return ReadPostAnswer(absl::StrCat("HTTP/1.1 ", code, " so\r\n")).code();
  };
  EXPECT_EQ(answered(200), absl::StatusCode::kOk);
  EXPECT_EQ(answered(204), absl::StatusCode::kOk);
  EXPECT_EQ(answered(302), absl::StatusCode::kFailedPrecondition) << "it is not followed";
  EXPECT_EQ(answered(404), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(answered(429), absl::StatusCode::kUnavailable);
  EXPECT_EQ(answered(503), absl::StatusCode::kUnavailable);
  for (const char* none : {"", "SSH-2.0-x\r\n", "HTTP/1.1", "HTTP/1.1 2\r\n", "HTTP/1.1 999 x"}) {
    EXPECT_TRUE(absl::IsUnavailable(ReadPostAnswer(none))) << none;
  }
}

TEST(ReadPostAnswer, SkipsInterimAnswers) {
  const std::string early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  const std::string interim = absl::StrCat("HTTP/1.1 100 Continue\r\n\r\n", early);
  EXPECT_TRUE(ReadPostAnswer(absl::StrCat(interim, "HTTP/1.1 204 No Content\r\n")).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      ReadPostAnswer(absl::StrCat(interim, "HTTP/1.1 404 Not Found\r\n"))));
  EXPECT_TRUE(absl::IsUnavailable(ReadPostAnswer(interim))) << "the answer itself is missing";
}

TEST(WithoutInterim, IsEmptyUntilTheLastInterimAnswerIsComplete) {
  const std::string answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n";
  const size_t end = answer.rfind("HTTP");
  for (size_t size = sizeof("HTTP/1.1 "); size <= end; ++size) {
    EXPECT_EQ(WithoutInterim(answer.substr(0, size)), "") << size;
  }
  EXPECT_EQ(WithoutInterim(answer), "HTTP/1.1 200 OK\r\n");
  EXPECT_EQ(WithoutInterim("HTTP/1.1 "), "HTTP/1.1 ") << "nobody knows yet";
}

}  // namespace
}  // namespace hlaunch
