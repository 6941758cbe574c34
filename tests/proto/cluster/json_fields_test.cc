// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hlaunch {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(absl::string_view text) {
  const absl::Status status = ParseObject(text).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
  return std::string(status.message());
}

std::string Nested(size_t depth) {
  return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
}

TEST(ParseObject, SaysWhatItIsInstead) {
  EXPECT_TRUE(ParseObject(" {\"a\": [1]} ").ok());
  EXPECT_THAT(Refusal("[1]"), HasSubstr("array"));
  EXPECT_THAT(Refusal("null"), HasSubstr("null"));
  EXPECT_THAT(Refusal("{\"a\": tru}"), HasSubstr("byte"));
  EXPECT_THAT(Refusal("{} {}"), HasSubstr("byte"));
  EXPECT_THAT(Refusal("{\"a\": 1e999}"), HasSubstr("too large"));
  EXPECT_THAT(Refusal("{\"a\": \"\xff\"}"), HasSubstr("byte"));  // This is not UTF-8.
  Refusal("");
}

TEST(ParseObject, BoundsTheDepth) {
  EXPECT_TRUE(ParseObject(Nested(16)).ok());
  EXPECT_THAT(Refusal(Nested(17)), HasSubstr("16 deep"));
  EXPECT_THAT(Refusal(Nested(1'000'000)), HasSubstr("16 deep"));
  EXPECT_TRUE(ParseObject("{\"a\": \"[[[[[[[[[[[[[[[[[[[[[[\\\"[[\"}").ok());
}

TEST(TextOf, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(TextOf({{"a", "x\xff"}}), "{\"a\":\"x\xEF\xBF\xBD\"}");
  EXPECT_EQ(WithoutZeroBytes(absl::string_view("a\0b", 3)),
            "a\xEF\xBF\xBD"
            "b");
}

// Runs every reader on one object.
struct Read {
  std::string text = "before";
  std::vector<std::string> texts;
  bool flag = false;
  int number = 7;
  uint64_t big = 7;
  double real = 0.5;
  std::vector<int> numbers;
  absl::Status status;

  explicit Read(const json& object) {
    JsonFields fields(object, "a thing");
    fields.Text("text", &text, 8);
    fields.Texts("texts", &texts, 2, 4);
    fields.Flag("flag", &flag);
    fields.Number("number", &number, -5, 5);
    fields.Number("big", &big);
    fields.Real("real", &real, 0, 1);
    fields.Numbers("numbers", &numbers, 0, 9, 3);
    status = fields.status();
  }
};

TEST(JsonFields, MissingFieldsKeepTheirValues) {
  const Read read(json::object({{"later", "what a later version has"}}));
  EXPECT_TRUE(read.status.ok());
  EXPECT_EQ(read.text, "before");
  EXPECT_EQ(read.number, 7);
}

TEST(JsonFields, ReadsEachKind) {
  const Read read({{"text", "now"},
                   {"texts", {"a", "b"}},
                   {"flag", true},
                   {"number", -5},
                   {"big", UINT64_MAX},
                   {"real", 1},
                   {"numbers", {0, 9}}});
  ASSERT_TRUE(read.status.ok()) << read.status;
  EXPECT_EQ(read.text, "now");
  EXPECT_THAT(read.texts, ElementsAre("a", "b"));
  EXPECT_TRUE(read.flag);
  EXPECT_EQ(read.number, -5);
  EXPECT_EQ(read.big, UINT64_MAX);
  EXPECT_EQ(read.real, 1.0);
  EXPECT_THAT(read.numbers, ElementsAre(0, 9));
}

TEST(JsonFields, RefusesWrongValuesByName) {
  const std::vector<std::pair<const char*, json>> wrong = {
      {"text", 1},
      {"text", nullptr},
      {"text", "123456789"},
      {"text", std::string("a\0b", 3)},
      {"texts", "a"},
      {"texts", json::array({"a", 1})},
      {"texts", {"a", "b", "c"}},
      {"texts", json::array({"12345"})},
      {"texts", json::array({std::string("\0", 1)})},
      {"flag", 1},
      {"flag", "true"},
      {"number", 6},
      {"number", -6},
      {"number", 1.0},
      {"number", "1"},
      {"number", UINT64_MAX},
      {"number", true},
      {"big", -1},
      {"big", 1.5},
      {"real", 1.01},
      {"real", "1"},
      {"numbers", 1},
      {"numbers", {1, 2, 3, 4}},
      {"numbers", json::array({10})},
      {"numbers", json::array({"1"})},
  };
  for (const auto& [name, value] : wrong) {
    const Read read(json::object({{name, value}}));
    EXPECT_TRUE(absl::IsInvalidArgument(read.status)) << name << " " << value;
    EXPECT_THAT(std::string(read.status.message()), HasSubstr(std::string("a thing: ") + name));
  }
}

TEST(JsonFields, KeepsTheFirstErrorAndReadsNoMore) {
  const Read read({{"text", 1}, {"number", 99}, {"flag", true}});
  EXPECT_THAT(std::string(read.status.message()), HasSubstr("text"));
  EXPECT_FALSE(read.flag);
  EXPECT_EQ(read.number, 7);
}

TEST(JsonFields, NeedsAnObject) {
  EXPECT_THAT(std::string(Read(json::array()).status.message()), HasSubstr("a thing is no object"));
}

TEST(JsonFields, GivesObjects) {
  const json object = {{"one", {{"a", 1}}}, {"many", {{{"a", 1}}, {{"a", 2}}}}, {"mixed", {1}}};
  JsonFields fields(object, "a thing");
  EXPECT_EQ(fields.Object("none"), nullptr);
  ASSERT_NE(fields.Object("one"), nullptr);
  EXPECT_EQ(fields.Objects("many", 2).size(), 2u);
  EXPECT_TRUE(fields.status().ok());
  EXPECT_TRUE(fields.Objects("many", 1).empty());
  EXPECT_THAT(std::string(fields.status().message()), HasSubstr("many"));
  JsonFields others(object, "a thing");
  EXPECT_TRUE(others.Objects("mixed", 2).empty());
  EXPECT_THAT(std::string(others.status().message()), HasSubstr("mixed"));
}

}  // namespace
}  // namespace hlaunch
