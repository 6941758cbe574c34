// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/status_page.h"

#include <openssl/evp.h>

#include <random>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launcher/report/status/html_text.h"
#include "launcher/report/status/page_style.h"
#include "tests/launcher/report/status/jobs_to_see.h"

namespace hlaunch {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string PageOf(const JobStatus& job, PageKind kind = PageKind::kServed) {
  return StatusPage(ModelOf(job, "--rdzv-endpoint node0"), kind);
}

// The names of all tags and their attributes, in order: the page without its texts.
std::string MarkupOf(const std::string& html) {
  std::string markup;
  bool in_tag = false, in_value = false;
  for (const char c : html) {
    if (!in_tag && c == '<') in_tag = true;
    if (in_tag && c == '"') in_value = !in_value;
    if (in_tag && !in_value) markup += c;
    if (in_tag && !in_value && c == '>') in_tag = false;
  }
  return markup;
}

std::string Sha256(absl::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::StrCat("sha256-", absl::Base64Escape({reinterpret_cast<char*>(digest), size}));
}

TEST(StatusPage, SaysAllThereIsToSay) {
  const std::string page = PageOf(RestartedJob());
  for (const char* text :
       {"<title>● 2/2 running, train-17</title>", "round 2 runs with 2 nodes and 4 workers</p>",
        "93.3 %: ran 4 min 40 s of 5 min 0 s", "worker rank 3 on node1 (pid 4242) exited with 7",
        "RuntimeError: HBM is gone", "hlaunch why train-17 --rdzv-endpoint node0",
        "<html lang=\"en\">", "aria-live=\"polite\"", "<th scope=\"col\">Round</th>"}) {
    EXPECT_THAT(page, HasSubstr(text));
  }
}

TEST(StatusPage, NeedsNothingBesides) {
  for (const PageKind kind : {PageKind::kServed, PageKind::kSnapshot}) {
    const std::string page = PageOf(HugeJob(), kind);
    for (const char* text : {"http:", "https:", "src=", "@import", "url(", " style=", " onclick"}) {
      EXPECT_THAT(page, Not(HasSubstr(text)));
    }
  }
}

TEST(StatusPage, IsSmallHoweverManyNodes) {
  EXPECT_LT(PageOf(RestartedJob()).size(), 16u << 10);
  EXPECT_LT(PageOf(HugeJob()).size(), 20u << 10);
}

TEST(StatusPage, AllowsItsOwnStyleAndScriptAlone) {
  EXPECT_EQ(Sha256(kPageStyle), kPageStyleHash);
  EXPECT_EQ(Sha256(kPageScript), kPageScriptHash);
  const std::string page = PageOf(RestartedJob());
  EXPECT_THAT(page, HasSubstr(absl::StrCat("<style>", kPageStyle, "</style>")));
  EXPECT_THAT(page, HasSubstr(absl::StrCat("<script>", kPageScript, "</script>")));
  EXPECT_THAT(PagePolicy(PageKind::kServed), HasSubstr("default-src 'none'"));
  EXPECT_THAT(PagePolicy(PageKind::kServed), Not(HasSubstr("unsafe")));
}

TEST(StatusPage, RefreshesWithoutAScript) {
  EXPECT_THAT(PageOf(RestartedJob()), HasSubstr("<noscript><meta http-equiv=\"refresh\""));
}

TEST(StatusPage, ASnapshotHasNoScriptAndItsOwnPolicy) {
  const std::string page = PageOf(RestartedJob(), PageKind::kSnapshot);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("http-equiv=\"refresh\"")));
  EXPECT_THAT(page, HasSubstr("http-equiv=\"Content-Security-Policy\""));
}

// Whatever strangers write, the markup is the same as with harmless texts.
TEST(StatusPage, NoTextIsMarkup) {
  const std::string harmless = MarkupOf(PageOf(HostileJob("words")));
  const std::string markup[] = {"<script>alert(1)</script>",
                                "\" onload=\"x",
                                "'><b>",
                                "</pre><i>",
                                "&lt;script&gt;",
                                "]]><!--",
                                "\xff<\xc3<x>",
                                "javascript:x"};
  for (const std::string& text : markup) {
    const std::string page = PageOf(HostileJob(text));
    EXPECT_EQ(MarkupOf(page), harmless) << text;
    EXPECT_THAT(page, Not(HasSubstr(absl::StrCat("<script>alert")))) << text;
  }
}

TEST(StatusPage, NoNoiseIsMarkup) {
  std::mt19937 random(22);  // NOLINT: the same noise each time.
  const std::string alphabet("<>&\"'=/ab!-[]\x1b\xff\xc3\xa4\x80;#0 \t", 24);
  for (int i = 0; i < 300; ++i) {
    std::string text = "x";
    const size_t size = 1 + random() % 60;
    while (text.size() < size) text += alphabet[random() % alphabet.size()];
    text += "y";
    EXPECT_EQ(MarkupOf(PageOf(HostileJob(text))), MarkupOf(PageOf(HostileJob("words"))))
        << absl::CHexEscape(text);
  }
}

TEST(HtmlText, HasNoMarkupAndSaysTheSame) {
  EXPECT_EQ(HtmlText("a<b>&\"'\x01\n"), "a&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD\n");
  std::mt19937 random(23);  // NOLINT: as above.
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (size_t k = random() % 40; k > 0; --k) text += static_cast<char>(random() % 256);
    const std::string html = HtmlText(text);
    EXPECT_EQ(html.find_first_of("<>\"'"), html.npos);
    EXPECT_EQ(FromUrlPart(ToUrlPart(text)), text);
    EXPECT_EQ(ToUrlPart(text).find_first_of("/?#<>\"' &"), std::string::npos);
  }
}

TEST(FromUrlPart, RefusesHalfOfOne) {
  EXPECT_EQ(FromUrlPart("a%2"), "");
  EXPECT_EQ(FromUrlPart("%zz"), "");
  EXPECT_EQ(FromUrlPart("a%2Fb"), "a/b");
}

TEST(JobsPage, LeadsToEachJob) {
  const ListedJob job = {"/jobs/a%2Fb", "a/b", "running", "2", "0", "it <runs>", Light::kGood};
  const std::string page = JobsPage({job}, 3, "now");
  EXPECT_THAT(page, HasSubstr("href=\"/jobs/a%2Fb\">a/b</a>"));
  EXPECT_THAT(page, HasSubstr("it &lt;runs&gt;"));
  EXPECT_THAT(page, HasSubstr("and 2 more"));
}

// Checks what a screen reader needs: each id occurs once, and each reference finds its id.
TEST(StatusPage, NamesItsParts) {
  const std::string page = PageOf(HugeJob());
  std::set<std::string> ids;
  for (size_t at = page.find(" id=\""); at != page.npos; at = page.find(" id=\"", at + 1)) {
    const size_t end = page.find('"', at + 5);
    EXPECT_TRUE(ids.insert(page.substr(at + 5, end - at - 5)).second);
  }
  const std::string refers = "aria-labelledby=\"";
  for (size_t at = page.find(refers); at != page.npos; at = page.find(refers, at + 1)) {
    const size_t begin = at + refers.size();
    EXPECT_EQ(ids.count(page.substr(begin, page.find('"', begin) - begin)), 1u);
  }
}

}  // namespace
}  // namespace hlaunch
