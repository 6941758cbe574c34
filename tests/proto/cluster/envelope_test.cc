// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/envelope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using testing::HasSubstr;

Envelope Sent(const Envelope& envelope) {
  const auto read = DecodeEnvelope(EncodeEnvelope(envelope));
  EXPECT_TRUE(read.ok()) << read.status();
  return read.value_or(Envelope());
}

void ExpectSame(const Envelope& a, const Envelope& b) {
  EXPECT_EQ(a.ask, b.ask);
  EXPECT_EQ(a.tell, b.tell);
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.user, b.user);
  EXPECT_EQ(a.body, b.body);
  EXPECT_EQ(a.error, b.error);
}

TEST(Envelope, EachKindComesAsItWasSent) {
  Envelope question = Question(UINT64_MAX, "throw_out", {{"host", "node1"}});
  question.user = ClusterUser{"alice", 4294967295u, true, true};
  ExpectSame(Sent(question), question);
  const Envelope news = NewsOf("part", {{"job", 1}});
  ExpectSame(Sent(news), news);
  const Envelope answer = AnswerTo(question, {{"job", 7}});
  ExpectSame(Sent(answer), answer);
  EXPECT_TRUE(Sent(answer).is_answer());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status why(static_cast<absl::StatusCode>(code), "there is no job 7");
    ExpectSame(Sent(ErrorTo(question, why)), ErrorTo(question, why));
  }
}

TEST(Envelope, ErrorsOfAnyTextCanBeRead) {
  const std::string text = std::string("a\0b\xff", 4) + std::string(100'000, '\xff');
  const Envelope error = Sent(ErrorTo(Question(1, "jobs", {}), absl::NotFoundError(text)));
  EXPECT_TRUE(absl::IsNotFound(error.error));
  EXPECT_THAT(std::string(error.error.message()), HasSubstr("a\xEF\xBF\xBD"));
}

TEST(Envelope, AnErrorOfALaterVersionIsAnError) {
  const auto read = DecodeEnvelope(R"({"id": 1, "error": {"code": "TOO_GREEN", "message": "m"}})");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->error, absl::UnknownError("m"));
  const auto no_error = DecodeEnvelope(R"({"id": 1, "error": {"code": "OK"}})");
  ASSERT_TRUE(no_error.ok());
  EXPECT_FALSE(no_error->error.ok());
}

TEST(Envelope, RefusesWhatIsNone) {
  const std::pair<const char*, const char*> wrong[] = {
      {"[]", "no object"},
      {"{", "no JSON"},
      {"{}", "id is missing"},
      {R"({"id": 1})", "body is missing"},
      {R"({"id": -1, "body": {}})", "id"},
      {R"({"id": "1", "body": {}})", "id"},
      {R"({"ask": "jobs", "body": {}})", "id is missing"},
      {R"({"ask": "", "id": 1})", "ask"},
      {R"({"ask": "rm -rf", "id": 1})", "ask"},
      {R"({"ask": 7, "id": 1})", "ask"},
      {R"({"ask": "jobs", "tell": "part", "id": 1})", "exclude"},
      {R"({"tell": "Part\n"})", "tell"},
      {R"({"id": 1, "body": []})", "body"},
      {R"({"id": 1, "body": null})", "body"},
      {R"({"id": 1, "error": "no"})", "error"},
      {R"({"id": 1, "error": {"message": 7}})", "message"},
      {R"({"ask": "jobs", "id": 1, "error": {}})", "error"},
      {R"({"ask": "jobs", "id": 1, "user": "root"})", "user"},
      {R"({"ask": "jobs", "id": 1, "user": {"name": "root"}})", "uid"},
      {R"({"ask": "jobs", "id": 1, "user": {"name": "root", "uid": 4294967296}})", "uid"},
      {R"({"ask": "jobs", "id": 1, "user": {"name": "root", "uid": 0, "admin": 1}})", "admin"},
  };
  for (const auto& [text, why] : wrong) {
    const absl::Status status = DecodeEnvelope(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << text;
  }
}

TEST(Envelope, NewsAndQuestionsNeedNoBody) {
  const auto read = DecodeEnvelope(R"({"ask": "nodes", "id": 3})");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->body.is_object());
  EXPECT_TRUE(DecodeEnvelope(R"({"tell": "parts"})").ok());
}

}  // namespace
}  // namespace hlaunch
