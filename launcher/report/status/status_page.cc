// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/status_page.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/report/status/html_text.h"
#include "launcher/report/status/page_style.h"
#include "launcher/report/status/time_words.h"

namespace hlaunch {
namespace {

constexpr int64_t kLineWidth = 1000;  // Of the time line, in its own units.
constexpr int64_t kLeastWidth = 3;    // The least width, so that a short phase is visible.

struct LightLook {
  const char* name;  // The name of its class.
  const char* sign;
};

LightLook LookOf(Light light) {
  switch (light) {
    case Light::kGood:
      return {"good", "●"};
    case Light::kWaiting:
      return {"wait", "▲"};
    case Light::kBad:
      return {"bad", "✖"};
    case Light::kIdle:
      break;
  }
  return {"idle", "■"};
}

struct PhaseLook {
  const char* name;  // The name of its class, also shown as text.
  int top, height;   // Of 12 units: phases differ in shape too.
};

PhaseLook LookOf(RoundPhase::Kind kind) {
  switch (kind) {
    case RoundPhase::Kind::kGathering:
      return {"gathering", 5, 2};
    case RoundPhase::Kind::kChecking:
      return {"checking", 3, 6};
    case RoundPhase::Kind::kRunning:
      return {"running", 1, 10};
    case RoundPhase::Kind::kStopping:
      break;
  }
  return {"stopping", 7, 4};
}

// `<name>text</name>`, with `text` escaped.
std::string Tag(absl::string_view name, absl::string_view text) {
  const absl::string_view end = name.substr(0, name.find(' '));
  return absl::StrCat("<", name, ">", HtmlText(text), "</", end, ">");
}

std::string StateTag(Light light, absl::string_view state) {
  const LightLook look = LookOf(light);
  return absl::StrCat("<span class=\"", look.name, "\">", look.sign, " ", HtmlText(state),
                      "</span>");
}

// A table cell. On a narrow screen it shows the name of its column.
std::string Cell(absl::string_view column, absl::string_view html, bool may_break = true) {
  return absl::StrCat("<td", may_break ? "" : " class=\"short\"",
                      column.empty() ? "" : absl::StrCat(" data-is=\"", column, "\""), ">", html,
                      "</td>");
}

std::string HeadOf(const std::vector<std::string>& columns) {
  std::string html = "<thead><tr>";
  for (const std::string& column : columns) absl::StrAppend(&html, Tag("th scope=\"col\"", column));
  return absl::StrCat(html, "</tr></thead>");
}

std::string Section(absl::string_view id, absl::string_view title, absl::string_view html) {
  return absl::StrCat("<section aria-labelledby=\"h-", id, "\"><h2 id=\"h-", id, "\">",
                      HtmlText(title), "</h2>\n", html, "</section>\n");
}

std::string List(const std::vector<std::string>& lines) {
  std::string html = "<ul>";
  for (const std::string& line : lines) absl::StrAppend(&html, Tag("li", line));
  return absl::StrCat(html, "</ul>\n");
}

std::string Header(const StatusModel& model) {
  const LightLook look = LookOf(model.light);
  return absl::StrCat("<header id=\"head\"><h1><span>", HtmlText(model.job),
                      "</span> <span class=\"state ", look.name, "\">", look.sign, " ",
                      HtmlText(model.state),
                      "</span></h1>\n<p id=\"sentence\" role=\"status\" aria-live=\"polite\">",
                      HtmlText(model.sentence), "</p>\n<p class=\"dim\">as of ",
                      HtmlText(model.told), "</p></header>\n");
}

std::string Facts(const StatusModel& model) {
  std::string html = "<dl>";
  for (const Fact& fact : model.facts) {
    absl::StrAppend(&html, fact.value.size() > 20 ? "<div class=\"wide\">" : "<div>",
                    Tag("dt", fact.name), Tag("dd", fact.value), "</div>");
  }
  return absl::StrCat(html, "</dl>\n");
}

std::string Rect(RoundPhase::Kind kind, int64_t x, int64_t width, absl::string_view words) {
  const PhaseLook look = LookOf(kind);
  return absl::StrCat("<rect class=\"", look.name, "\" x=\"", x, "\" y=\"", look.top, "\" width=\"",
                      width, "\" height=\"", look.height, "\">",
                      words.empty() ? "" : Tag("title", words), "</rect>");
}

std::string Bar(const StatusModel& model, const RoundRow& row) {
  const int64_t span = std::max<int64_t>(model.line_to_ms - model.line_from_ms, 1);
  std::string svg;
  std::vector<std::string> words;
  for (const RoundPhase& phase : row.phases) {
    const int64_t x = (phase.from_ms - model.line_from_ms) * kLineWidth / span;
    const int64_t wide = (phase.to_ms - phase.from_ms) * kLineWidth / span;
    const int64_t width = std::max(wide, kLeastWidth);
    words.push_back(
        absl::StrCat(LookOf(phase.kind).name, " ", SpanWords(phase.to_ms - phase.from_ms)));
    absl::StrAppend(&svg, Rect(phase.kind, std::min(x, kLineWidth - width), width, words.back()));
  }
  return absl::StrCat("<svg viewBox=\"0 0 ", kLineWidth,
                      " 12\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
                      HtmlText(absl::StrJoin(words, ", ")), "\">", svg, "</svg>");
}

std::string BarKey() {
  std::string html = "<p class=\"dim\">";
  for (const RoundPhase::Kind kind : {RoundPhase::Kind::kGathering, RoundPhase::Kind::kChecking,
                                      RoundPhase::Kind::kRunning, RoundPhase::Kind::kStopping}) {
    absl::StrAppend(&html, "<span class=\"key\"><svg viewBox=\"0 0 16 12\" aria-hidden=\"true\">",
                    Rect(kind, 0, 16, ""), "</svg>", LookOf(kind).name, "</span>");
  }
  return absl::StrCat(html, "</p>\n");
}

std::string Rounds(const StatusModel& model) {
  if (model.rounds.empty()) return "";
  std::string html = absl::StrCat(
      "<table><caption>From ", HtmlText(DateWords(model.line_from_ms)), " to ",
      HtmlText(ClockWords(model.line_to_ms)), ", the latest first.</caption>",
      HeadOf({"Round", "Time line", "At", "Start took", "Ran for", "Size", "Ended because"}),
      "<tbody>\n");
  for (const RoundRow& row : model.rounds) {
    absl::StrAppend(
        &html, "<tr>",
        Tag("th scope=\"row\"", absl::StrCat(row.name == "next" ? "" : "#", row.name)),
        "<td class=\"bar\">", Bar(model, row), "</td>", Cell("at", HtmlText(row.began), false),
        Cell("start took", HtmlText(row.took), false), Cell("ran for", HtmlText(row.ran), false),
        Cell("size", HtmlText(row.size), false),
        Cell("", row.end.empty() && row.current ? "<em>it goes on</em>" : HtmlText(row.end)),
        "</tr>\n");
  }
  return Section("rounds", "Rounds", absl::StrCat(html, "</tbody></table>\n", BarKey()));
}

// The letters of a node's workers. Failed workers stand out.
std::string Cells(const std::string& cells) {
  std::string html = "<span class=\"cells\">";
  for (const char cell : cells) {
    const std::string letter = HtmlText({&cell, 1});
    absl::StrAppend(&html, cell == 'X' ? absl::StrCat("<b>", letter, "</b>") : letter);
  }
  return absl::StrCat(html, "</span>");
}

std::string NodeTable(const std::vector<NodeRow>& rows) {
  if (rows.empty()) return "";
  std::string html = absl::StrCat(
      "<table>", HeadOf({"Node", "Host", "State", "Ranks", "Workers", "Note"}), "<tbody>\n");
  for (const NodeRow& row : rows) {
    absl::StrAppend(&html, "<tr>", Tag("th scope=\"row\"", row.rank), Cell("", HtmlText(row.host)),
                    Cell("", StateTag(row.light, row.state)),
                    Cell("ranks", HtmlText(row.ranks), false), Cell("workers", Cells(row.cells)),
                    Cell("", HtmlText(row.note)), "</tr>\n");
  }
  return absl::StrCat(html, "</tbody></table>\n");
}

std::string Folds(const std::vector<NodeFold>& folds) {
  std::string html;
  for (size_t i = 0; i < folds.size(); ++i) {
    const NodeFold& fold = folds[i];
    absl::StrAppend(&html, "<details id=\"fold-", i, "\"><summary id=\"fold-", i, "-name\">",
                    fold.nodes, " nodes with ", fold.workers,
                    " workers alike: ", StateTag(fold.light, fold.state), "</summary><p>",
                    HtmlText(fold.hosts), "</p></details>\n");
  }
  return html;
}

std::string Nodes(const StatusModel& model) {
  const NodeGroups& nodes = model.nodes;
  if (nodes.rows.empty() && nodes.folds.empty()) return "";
  const std::string more =
      nodes.unlisted == 0 ? "" : Tag("p", absl::StrCat("and ", nodes.unlisted, " more"));
  return Section(
      "nodes", nodes.folds.empty() ? "Nodes" : "Nodes: the odd ones are open",
      absl::StrCat(
          Folds(nodes.folds), NodeTable(nodes.rows), more,
          "<p class=\"dim\">A letter a worker: R runs, W waits, C is checked, S stops, "
          ". ended well, X failed, ? is not heard of, - has no part, ! cannot run.</p>\n"));
}

std::string LastLines(const StatusModel& model) {
  if (model.last_lines_of.empty()) return "";
  const std::string lines =
      model.last_lines.empty()
          ? "<p>It wrote nothing that is shown here.</p>\n"
          : absl::StrCat("<pre tabindex=\"0\" id=\"lines\">",
                         HtmlText(absl::StrJoin(model.last_lines, "\n")), "</pre>\n");
  const std::string more = model.log_file.empty()
                               ? ""
                               : absl::StrCat("<p class=\"dim\">All of it is in <code>",
                                              HtmlText(model.log_file), "</code> there.</p>\n");
  return Section(
      "lines", "Last lines",
      absl::StrCat(Tag("p", absl::StrCat("Of ", model.last_lines_of, ".")), lines, more));
}

std::string Figures(const StatusModel& model) {
  if (model.figures.empty()) return "";
  std::string html = absl::StrCat("<table><caption>What nodes measured of themselves.</caption>",
                                  HeadOf({"Figure", "Lowest to highest", "Odd"}), "<tbody>\n");
  for (const FigureRow& row : model.figures) {
    const std::string odd =
        row.odd.empty() ? "" : absl::StrCat("<span class=\"bad\">✖ ", HtmlText(row.odd), "</span>");
    absl::StrAppend(&html, "<tr>", Tag("th scope=\"row\"", row.name), Cell("", HtmlText(row.range)),
                    Cell("", odd), "</tr>\n");
  }
  return absl::StrCat(html, "</tbody></table>\n");
}

std::string Health(const StatusModel& model) {
  if (model.health.empty() && model.figures.empty()) return "";
  return Section("health", "Health",
                 absl::StrCat(model.health.empty() ? "" : List(model.health), Figures(model)));
}

std::string Commands(const StatusModel& model) {
  if (model.commands.empty()) return "";
  return Section("ask", "Ask further",
                 absl::StrCat("<pre tabindex=\"0\" id=\"commands\">",
                              HtmlText(absl::StrJoin(model.commands, "\n")), "</pre>\n"));
}

std::string Whole(absl::string_view title, PageKind kind, absl::string_view html) {
  const bool served = kind == PageKind::kServed;
  const std::string policy = absl::StrCat("<meta http-equiv=\"Content-Security-Policy\" content=\"",
                                          HtmlText(PagePolicy(kind)), "\">\n");
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      served ? "" : policy,
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n",
      Tag("title", title), "\n",
      served ? "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>\n" : "", "<style>",
      kPageStyle, "</style>\n</head>\n<body>\n", html,
      served ? absl::StrCat("<script>", kPageScript, "</script>\n") : "", "</body>\n</html>\n");
}

}  // namespace

std::string PagePolicy(PageKind kind) {
  const bool served = kind == PageKind::kServed;
  return absl::StrCat("default-src 'none'; style-src '", kPageStyleHash, "'; ",
                      served ? absl::StrCat("script-src '", kPageScriptHash,
                                            "'; connect-src 'self'; frame-ancestors 'none'; ")
                             : "",
                      "base-uri 'none'; form-action 'none'");
}

std::string StatusPage(const StatusModel& model, PageKind kind) {
  const std::string awaited =
      model.awaited.empty() ? "" : Section("awaited", "Awaited", List(model.awaited));
  const std::string stale =
      kind == PageKind::kServed ? "<p id=\"stale\" role=\"alert\"></p>\n" : "";
  return Whole(
      absl::StrCat(LookOf(model.light).sign, " ", model.title), kind,
      absl::StrCat(Header(model), stale, "<main id=\"main\">\n", Facts(model), awaited,
                   Rounds(model), Nodes(model), LastLines(model), Health(model), Commands(model),
                   "</main>\n<footer>hlaunch; times are UTC",
                   kind == PageKind::kSnapshot ? "; a snapshot, which does not change" : "",
                   "</footer>\n"));
}

std::string JobsPage(const std::vector<ListedJob>& jobs, int total, const std::string& told) {
  std::string html =
      absl::StrCat("<header id=\"head\"><h1>", total, total == 1 ? " job" : " jobs",
                   "</h1><p class=\"dim\">as of ", HtmlText(told),
                   "</p></header>\n<p id=\"stale\" role=\"alert\"></p>\n<main id=\"main\">\n");
  if (!jobs.empty()) {
    absl::StrAppend(&html, "<table>", HeadOf({"Job", "State", "Nodes", "Restarts", "What it does"}),
                    "<tbody>\n");
  }
  for (const ListedJob& job : jobs) {
    absl::StrAppend(&html, "<tr><th scope=\"row\"><a id=\"", HtmlText(job.path), "\" href=\"",
                    HtmlText(job.path), "\">", HtmlText(job.job), "</a></th>",
                    Cell("", StateTag(job.light, job.state)),
                    Cell("nodes", HtmlText(job.nodes), false),
                    Cell("restarts", HtmlText(job.restarts), false),
                    Cell("", HtmlText(job.sentence)), "</tr>\n");
  }
  if (!jobs.empty()) absl::StrAppend(&html, "</tbody></table>\n");
  const int more = total - static_cast<int>(jobs.size());
  if (more > 0) absl::StrAppend(&html, Tag("p", absl::StrCat("and ", more, " more")));
  return Whole(absl::StrCat(total, total == 1 ? " job" : " jobs", ", hlaunch"), PageKind::kServed,
               absl::StrCat(html, "</main>\n<footer>hlaunch; times are UTC</footer>\n"));
}

}  // namespace hlaunch
