// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/c10d/c10d_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/store/keys/key_space.h"
#include "tests/rendezvous/recorded_stream.h"
#include "tests/rendezvous/store/c10d/c10d_bytes.h"

namespace hlaunch {
namespace {

using testing::ElementsAre;

// Each request as "op keys|values|number", then the error if there is one.
std::vector<std::string> ParseIn(C10dParser& parser, absl::string_view bytes, size_t piece) {
  std::vector<std::string> seen;
  while (!bytes.empty()) {
    absl::string_view now = bytes.substr(0, piece);
    bytes.remove_prefix(now.size());
    for (;;) {
      const auto request = parser.Next(&now);
      if (!request.ok()) {
        seen.push_back(absl::StrCat("error ", request.status().ToString()));
        return seen;
      }
      if (!request->has_value()) break;
      seen.push_back(absl::StrCat(static_cast<int>((*request)->op), " ",
                                  absl::StrJoin((*request)->keys, ","), "|",
                                  absl::StrJoin((*request)->values, ","), "|", (*request)->number));
    }
  }
  return seen;
}

std::vector<std::string> Parse(absl::string_view bytes, size_t piece = 1 << 20) {
  C10dParser parser;
  return ParseIn(parser, bytes, piece);
}

// A request of an older dialect, by its number.
std::string Legacy(uint8_t code, const std::vector<std::string>& texts) {
  std::string bytes;
  PutByte(&bytes, code);
  for (const std::string& text : texts) PutText(&bytes, text);
  return bytes;
}

const std::vector<C10dRequest>& OneOfEach() {
  static const auto& all = *new std::vector<C10dRequest>{
      {C10dOp::kSet, {"k"}, {"v"}, 0},
      {C10dOp::kSet, {""}, {""}, 0},
      {C10dOp::kCompareSet, {"k"}, {"old", "new"}, 0},
      {C10dOp::kGet, {"k"}, {}, 0},
      {C10dOp::kAdd, {"k"}, {}, -3},
      {C10dOp::kCheck, {"a", "b"}, {}, 0},
      {C10dOp::kCheck, {}, {}, 0},
      {C10dOp::kWait, {"a", "b", "c"}, {}, 0},
      {C10dOp::kNumKeys, {}, {}, 0},
      {C10dOp::kDeleteKey, {"k"}, {}, 0},
      {C10dOp::kAppend, {"k"}, {"more"}, 0},
      {C10dOp::kMultiGet, {"a", "b"}, {}, 0},
      {C10dOp::kMultiSet, {"a", "b"}, {"1", "2"}, 0},
      {C10dOp::kCancelWait, {}, {}, 0},
      {C10dOp::kPing, {}, {}, 4660},
      {C10dOp::kQueuePush, {"q"}, {"v"}, 0},
      {C10dOp::kQueuePop, {"q"}, {}, 0},
      {C10dOp::kQueueLen, {"q"}, {}, 0},
      {C10dOp::kListKeys, {}, {}, 0},
      {C10dOp::kBarrier, {"b"}, {}, 16},
  };
  return all;
}

TEST(SerializeC10dRequest, WritesTheKnownBytes) {
  EXPECT_EQ(Validate(), absl::HexStringToBytes("00cef7853c"));
  EXPECT_EQ(SerializeC10dRequest({C10dOp::kPing, {}, {}, 4660}),
            absl::HexStringToBytes("0d34120000"));
  EXPECT_EQ(SerializeC10dRequest({C10dOp::kAdd, {"init/"}, {}, 1}),
            absl::HexStringToBytes("040500000000000000696e69742f0100000000000000"));
}

TEST(C10dParser, ReadsBackEveryRequestHoweverItIsSplit) {
  std::string bytes = Validate();
  for (const C10dRequest& request : OneOfEach()) bytes += SerializeC10dRequest(request);
  const std::vector<std::string> whole = Parse(bytes);
  ASSERT_EQ(whole.size(), OneOfEach().size());
  for (size_t i = 0; i < whole.size(); ++i) {
    const C10dRequest& request = OneOfEach()[i];
    EXPECT_EQ(whole[i],
              absl::StrCat(static_cast<int>(request.op), " ", absl::StrJoin(request.keys, ","), "|",
                           absl::StrJoin(request.values, ","), "|", request.number));
  }
  for (const size_t piece : {1, 2, 3, 7}) EXPECT_EQ(Parse(bytes, piece), whole);
}

TEST(C10dParser, ReadsRecordedClientsHoweverTheyAreSplit) {
  for (const std::string& name : RecordedStreamNames()) {
    std::map<size_t, std::string> clients;
    for (const RecordedPiece& piece : ReadRecordedStream(name)) {
      if (piece.from_client) clients[piece.connection] += piece.bytes;
    }
    for (const auto& [connection, bytes] : clients) {
      C10dParser parser;
      const auto whole = ParseIn(parser, bytes, bytes.size());
      EXPECT_THAT(whole.back(), testing::Not(testing::HasSubstr("error"))) << name;
      EXPECT_EQ(Parse(bytes, 1), whole) << name;
      EXPECT_EQ(parser.dialect() == C10dDialect::kTorch22, name.find("torch-2") == 0) << name;
    }
  }
}

TEST(C10dParser, FirstBytesTellValidateFromAnOldSet) {
  C10dParser old_client;
  EXPECT_THAT(ParseIn(old_client, Legacy(0, {"/k", "v"}), 1), ElementsAre("1 /k|v|0"));
  EXPECT_EQ(old_client.dialect(), C10dDialect::kLegacy);
  C10dParser new_client;
  EXPECT_THAT(ParseIn(new_client, Validate(), 1), ElementsAre());
  EXPECT_EQ(new_client.dialect(), C10dDialect::kTorch22);
}

TEST(C10dParser, CodeSevenIsAWatchOnlyWhereItComesFirst) {
  C10dParser callbacks;
  EXPECT_THAT(ParseIn(callbacks, Legacy(7, {"/a"}) + Legacy(7, {"/b"}), 99),
              ElementsAre("19 /a||0", "19 /b||0"));
  EXPECT_EQ(callbacks.dialect(), C10dDialect::kTorch1);
  C10dParser main;
  EXPECT_THAT(ParseIn(main, Legacy(2, {"/a"}) + Legacy(7, {"/b"}), 99),
              ElementsAre("3 /a||0", "8 /b||0"));
  EXPECT_EQ(main.dialect(), C10dDialect::kTorch21);
}

TEST(C10dParser, CodeEightIsADeleteIfSilenceFollows) {
  C10dParser parser;
  EXPECT_THAT(ParseIn(parser, Legacy(8, {"/a"}), 1), ElementsAre());
  ASSERT_TRUE(parser.awaits_silence());
  EXPECT_EQ(parser.Silence().op, C10dOp::kDeleteKey);
  EXPECT_EQ(parser.dialect(), C10dDialect::kTorch1);
  EXPECT_THAT(ParseIn(parser, Legacy(8, {"/b"}), 1), ElementsAre("8 /b||0"));  // Now certain.
}

TEST(C10dParser, CodeEightIsAnAppendIfMoreFollows) {
  C10dParser parser;
  EXPECT_THAT(ParseIn(parser, Legacy(8, {"/a", "v"}), 1), ElementsAre("9 /a|v|0"));
  EXPECT_FALSE(parser.awaits_silence());
  EXPECT_EQ(parser.dialect(), C10dDialect::kTorch21);
}

TEST(C10dParser, ATorch1ClientThatIsKnownNeedsNoSilence) {
  C10dParser parser(C10dDialect::kTorch1);
  EXPECT_THAT(ParseIn(parser, Legacy(8, {"/a"}) + Legacy(7, {"/b"}), 1),
              ElementsAre("8 /a||0", "19 /b||0"));
  C10dParser setter(C10dDialect::kTorch1);
  EXPECT_THAT(ParseIn(setter, Legacy(0, {"/k", "v"}) + Legacy(8, {"/k"}), 1),
              ElementsAre("1 /k|v|0", "8 /k||0"));
  EXPECT_FALSE(setter.awaits_silence());
}

// No client of 2.1 was available: these bytes are what its source writes.
TEST(C10dParser, ATorch21ClientThatIsKnownMayBeginWithDeleteOrAppend) {
  C10dParser deletes(C10dDialect::kTorch21);
  EXPECT_THAT(ParseIn(deletes, Legacy(7, {"/a"}), 1), ElementsAre("8 /a||0"));
  C10dParser appends(C10dDialect::kTorch21);
  EXPECT_THAT(ParseIn(appends, Legacy(8, {"/a"}), 1), ElementsAre());
  EXPECT_FALSE(appends.awaits_silence());
  EXPECT_THAT(ParseIn(appends, Legacy(8, {"/a", "v"}).substr(11), 1), ElementsAre("9 /a|v|0"));
}

TEST(C10dParser, KnowsValidateWhateverOlderClientsAre) {
  for (const C10dDialect older :
       {C10dDialect::kTorch1, C10dDialect::kTorch21, C10dDialect::kTorch22}) {
    C10dParser parser(older);
    EXPECT_THAT(ParseIn(parser, Validate() + SerializeC10dRequest({C10dOp::kGet, {"k"}, {}, 0}), 1),
                ElementsAre("3 k||0"));
  }
}

TEST(C10dParser, RefusesOlderClientsWhereNoneAreToCome) {
  for (const std::string& bytes : {Legacy(0, {"/k", "v"}), Legacy(2, {"/k"})}) {
    C10dParser parser(C10dDialect::kTorch22);
    EXPECT_THAT(ParseIn(parser, bytes, 1), ElementsAre(testing::HasSubstr("--store-dialect")));
  }
}

TEST(ParseC10dDialect, KnowsFourNames) {
  EXPECT_EQ(*ParseC10dDialect("auto"), C10dDialect::kUnknown);
  EXPECT_EQ(*ParseC10dDialect("torch1.13"), C10dDialect::kTorch1);
  EXPECT_EQ(*ParseC10dDialect("torch2.1"), C10dDialect::kTorch21);
  EXPECT_EQ(*ParseC10dDialect("torch2.2+"), C10dDialect::kTorch22);
  EXPECT_TRUE(absl::IsInvalidArgument(ParseC10dDialect("torch2").status()));
}

TEST(C10dParser, RefusesUnknownCodes) {
  for (const char* text : {"GET / HTTP/1.1\r\n", "\x16\x03\x01", "\x0c", "\xff"}) {
    EXPECT_THAT(Parse(text), ElementsAre(testing::HasSubstr("INVALID_ARGUMENT"))) << text;
  }
  EXPECT_THAT(Parse(Validate() + "\x13"), ElementsAre(testing::HasSubstr("unknown code 19")));
  EXPECT_THAT(Parse(Validate() + Validate()), ElementsAre(testing::HasSubstr("unknown code 0")));
}

TEST(C10dParser, RefusesLengthsOverTheLimitsBeforeTheBytesCome) {
  const auto with_length = [](uint8_t code, uint64_t length) {
    std::string bytes = Validate();
    PutByte(&bytes, code);
    PutInt64(&bytes, static_cast<int64_t>(length));
    return bytes;
  };
  EXPECT_THAT(Parse(with_length(3, kMaxKeyBytes)), ElementsAre());
  EXPECT_THAT(Parse(with_length(6, kMaxListKeys)), ElementsAre());
  for (const auto& bytes : {with_length(3, kMaxKeyBytes + 1), with_length(3, ~uint64_t{0}),
                            with_length(6, kMaxListKeys + 1), with_length(11, ~uint64_t{0})}) {
    EXPECT_THAT(Parse(bytes), ElementsAre(testing::HasSubstr("RESOURCE_EXHAUSTED")));
  }
}

TEST(C10dParser, RefusesValuesAndMessagesOverTheLimits) {
  const std::string value(kMaxValueBytes, 'x');
  EXPECT_EQ(Parse(Validate() + SerializeC10dRequest({C10dOp::kSet, {"k"}, {value}, 0})).size(), 1u);
  EXPECT_THAT(Parse(Validate() + SerializeC10dRequest({C10dOp::kSet, {"k"}, {value + "x"}, 0})),
              ElementsAre(testing::HasSubstr("RESOURCE_EXHAUSTED")));
  const C10dRequest many{C10dOp::kMultiSet, std::vector<std::string>(9, "k"),
                         std::vector<std::string>(9, value), 0};
  EXPECT_THAT(Parse(Validate() + SerializeC10dRequest(many)),
              ElementsAre(testing::HasSubstr("RESOURCE_EXHAUSTED")));
}

TEST(C10dParser, TakesWhatItsOwnLimitsAllow) {
  const auto parse = [](const StoreLimits& limits, const C10dRequest& request) {
    C10dParser parser(C10dDialect::kUnknown, limits);
    return ParseIn(parser, Validate() + SerializeC10dRequest(request), 1 << 20);
  };
  const auto refused = ElementsAre(testing::HasSubstr("RESOURCE_EXHAUSTED"));
  const StoreLimits tight{.key_bytes = 2, .value_bytes = 3, .list_keys = 1};
  EXPECT_THAT(parse(tight, {C10dOp::kSet, {"kk"}, {"vvv"}, 0}), ElementsAre("1 kk|vvv|0"));
  EXPECT_THAT(parse(tight, {C10dOp::kSet, {"kkk"}, {""}, 0}), refused);
  EXPECT_THAT(parse(tight, {C10dOp::kSet, {"k"}, {"vvvv"}, 0}), refused);
  EXPECT_THAT(parse(tight, {C10dOp::kCheck, {"k", "l"}, {}, 0}), refused);
  // A request can hold two values of the largest size, whatever that size is.
  const StoreLimits wide{.value_bytes = 48 << 20};
  const std::string value(wide.value_bytes, 'x');
  EXPECT_THAT(parse(wide, {C10dOp::kCompareSet, {"k"}, {value, value}, 0}),
              ElementsAre(testing::StartsWith("2 k|")));
}

}  // namespace
}  // namespace hlaunch
