// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/man_page.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/release.h"

namespace hlaunch {
namespace {

using absl::string_view;

// Escapes `text` for a line of groff, which interprets `\`, a `.` or `'` at the start of a line,
// and takes `-` as a hyphen.
std::string Text(string_view text) {
  const std::string plain = absl::StrReplaceAll(text, {{"\\", "\\(rs"}, {"-", "\\-"}});
  const bool leads = absl::StartsWith(plain, ".") || absl::StartsWith(plain, "'");
  return absl::StrCat(leads ? "\\&" : "", plain);
}

// Returns whether `line` is an option, or a setting of a file, "name = VALUE" after six spaces.
bool IsOption(string_view line) {
  const bool is_setting = absl::StartsWith(line, "      ") && line.size() > 6 &&
                          absl::ascii_islower(static_cast<unsigned char>(line[6])) &&
                          absl::StrContains(line, " = ");
  return absl::StartsWith(line, "  -") || absl::StartsWith(line, "      --") || is_setting;
}

// Two spaces separate an option from its help. Without them the help begins in the next line.
void SplitOption(string_view line, std::string* names, std::string* help) {
  const string_view row = absl::StripAsciiWhitespace(line);
  const size_t gap = row.find("  ");
  *names = std::string(row.substr(0, gap));
  *help = gap == row.npos ? "" : std::string(absl::StripAsciiWhitespace(row.substr(gap)));
}

// Reads help line by line and writes the page.
class Writer {
 public:
  void Add(string_view line) {
    if (absl::ConsumePrefix(&line, "usage: ")) {
      Section("SYNOPSIS");
      in_usage_ = true;
    }
    if (line.empty()) {
      EndOfParagraph();
    } else if (in_usage_) {
      absl::StrAppend(&page_, ".B ", Text(absl::StripAsciiWhitespace(line)), "\n.br\n");
    } else if (IsOption(line)) {
      AddOption(line);
    } else if (absl::ConsumePrefix(&line, "Exit code: ")) {
      Section("EXIT STATUS");
      AddText(line);
    } else if (line[0] != ' ' && absl::ConsumeSuffix(&line, ":")) {
      AddHeading(line);
    } else {
      AddText(line);
    }
  }

  std::string Finish() {
    EndOfParagraph();
    return page_;
  }

 private:
  void Section(string_view name) {
    absl::StrAppend(&page_, ".SH ", name, "\n");
    after_paragraph_ = false;
  }

  void AddHeading(string_view name) {
    if (name == "Examples") {
      Section("EXAMPLES");
      absl::StrAppend(&page_, ".nf\n");
      verbatim_ = true;
    } else {
      OpenOptions();
      absl::StrAppend(&page_, ".SS ", Text(name), "\n");
    }
  }

  void OpenOptions() {
    if (!std::exchange(has_options_, true)) Section("OPTIONS");
  }

  void AddOption(string_view line) {
    OpenOptions();
    in_options_ = true;
    after_usage_ = after_options_ = after_paragraph_ = false;
    std::string names, help;
    SplitOption(line, &names, &help);
    absl::StrAppend(&page_, ".TP\n.B ", Text(names), "\n");
    if (!help.empty()) absl::StrAppend(&page_, Text(help), "\n");
  }

  void AddText(string_view line) {
    if (std::exchange(after_usage_, false)) Section("DESCRIPTION");
    if (std::exchange(after_options_, false)) Section("NOTES");
    if (std::exchange(after_paragraph_, false)) absl::StrAppend(&page_, ".PP\n");
    absl::StrAppend(&page_, Text(verbatim_ ? line : absl::StripAsciiWhitespace(line)), "\n");
    in_text_ = !in_options_;
  }

  void EndOfParagraph() {
    if (std::exchange(verbatim_, false)) absl::StrAppend(&page_, ".fi\n");
    if (std::exchange(in_usage_, false)) after_usage_ = true;
    after_paragraph_ = std::exchange(in_text_, false);
    after_options_ = std::exchange(in_options_, false);
  }

  std::string page_;
  bool in_usage_ = false;
  bool in_text_ = false;
  bool in_options_ = false;
  bool verbatim_ = false;
  bool has_options_ = false;
  bool after_usage_ = false;      // The next text is the description.
  bool after_options_ = false;    // The next text is notes.
  bool after_paragraph_ = false;  // The next text begins a new paragraph.
};

}  // namespace

std::string ManPage(string_view name, string_view summary, string_view help) {
  Writer writer;
  for (const string_view line : absl::StrSplit(absl::StripSuffix(help, "\n"), '\n')) {
    writer.Add(line);
  }
  return absl::StrCat(".\\\" Made of `--help`; see launcher/text/man_page.h.\n.TH ",
                      absl::AsciiStrToUpper(name), " 1 \"\" \"hlaunch ", kRelease, "\" ",
                      "\"User Commands\"\n.SH NAME\n", Text(name), " \\- ", Text(summary), "\n",
                      writer.Finish());
}

}  // namespace hlaunch
