// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/terminal_text.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/log.h"

namespace hlaunch {
namespace {

TEST(TerminalText, LeavesWhatPeopleWrite) {
  for (const absl::string_view text :
       {"", "node0 (pid 17): \"50 %\" \\ done", "a\tb",
        "M\u00fcller \u2013 \u5317\u4eac \U0001f600", "run:\n    hlaunch --nnodes 2"}) {
    EXPECT_EQ(TerminalText(text), text);
  }
}

TEST(TerminalText, ShowsWhatATerminalWouldObey) {
  const struct {
    absl::string_view text, shown;
  } rows[] = {
      {"\x1b[2J", "\\u001b[2J"},
      {"a\rb", "a\\u000db"},
      {absl::string_view("a\0b", 3), "a\\u0000b"},
      {"\x7f", "\\u007f"},
      {"\u0085\u009b2J", "\\u0085\\u009b2J"},  // C1: NEL, CSI.
      {"a\u202etxt.exe\u202c", "a\\u202etxt.exe\\u202c"},
      {"\u2066x\u2069\u061c", "\\u2066x\\u2069\\u061c"},
      {"no\u200bde\ufeff0", "no\\u200bde\\ufeff0"},
      {"a\u2028b\u2029c", "a\\u2028b\\u2029c"},
      {"x\U000e0041", "x\\udb40\\udc41"},
      {"ok\nhlaunch: job succeeded", "ok\\u000ahlaunch: job succeeded"},
      {"end\n", "end\\u000a"},
  };
  for (const auto& row : rows) EXPECT_EQ(TerminalText(row.text), row.shown);
}

TEST(TerminalText, ShowsBytesThatAreNoUtf8) {
  const struct {
    absl::string_view text, shown;
  } rows[] = {
      {"caf\xe9", "caf\\xe9"},
      {"\x9b"
       "2J",
       "\\x9b2J"},  // C1 as one byte.
      {"\xc3", "\\xc3"},
      {"\xc0\x9b", "\\xc0\\x9b"},  // An overlong encoding.
      {"\xe0\x82\x9b", "\\xe0\\x82\\x9b"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
      {"\xe2\x80", "\\xe2\\x80"},
  };
  for (const auto& row : rows) EXPECT_EQ(TerminalText(row.text), row.shown);
}

TEST(TerminalLines, KeepsAllEndsOfLines) {
  EXPECT_EQ(TerminalLines("job  a\nstate\x1b\n"), "job  a\nstate\\u001b\n");
}

TEST(Log, ShowsWhatStrangersWroteAsItIs) {
  testing::internal::CaptureStderr();
  LogWarning("node a\u202eb\x1b]0;title\x07\nhlaunch: ok joined");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "hlaunch: node a\\u202eb\\u001b]0;title\\u0007\\u000ahlaunch: ok joined\n");
}

}  // namespace
}  // namespace hlaunch
