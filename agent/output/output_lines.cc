// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/output_lines.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {
namespace {

// Enough that kMaxTailBytes remain after control bytes and overwritten text are removed.
constexpr size_t kKeptBytes = 4 * kMaxTailBytes;
constexpr size_t kKeptOfLine = kMaxTailBytes;  // A little more if a character would be cut.
// A longer bar is shown only once it is complete.
constexpr size_t kMaxBarBytes = 4096;
constexpr absl::string_view kEraseLine = "\x1b[K";  // From the cursor to the end of the line.

// The length of the UTF-8 character at the start of `text`; 0 if there is no valid one.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xC2 ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Rejects overlong forms, surrogates and code points beyond U+10FFFF.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
      (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return length;
}

// A printed "\x1b[31m" would colour the report: colour codes are removed, other control bytes
// become '?'.
std::string Printable(absl::string_view line) {
  std::string text;
  while (!line.empty()) {
    if (line.substr(0, 2) == "\x1b[") {
      const size_t end = line.find_first_not_of("0123456789;?", 2);
      line.remove_prefix(end == absl::string_view::npos ? line.size() : end + 1);
      continue;
    }
    const size_t length = CharacterLength(line);
    const bool control = (line[0] >= 0 && line[0] < ' ' && line[0] != '\t') || line[0] == 127;
    if (length == 0 || control) {
      text += '?';
      line.remove_prefix(1);
    } else {
      text.append(line.data(), length);
      line.remove_prefix(length);
    }
  }
  return text;
}

// What a terminal shows of "10%\r20%\r": the text written last over the line.
absl::string_view LastState(absl::string_view line) {
  while (absl::ConsumeSuffix(&line, "\r")) {
  }
  const size_t cr = line.rfind('\r');
  return cr == absl::string_view::npos ? line : line.substr(cr + 1);
}

// Returns where the last lines of `bytes` begin that fill kKeptBytes. Earlier bytes need not be
// looked at.
size_t BeginOfLastLines(absl::string_view bytes) {
  size_t begin = bytes.size(), kept = 0;
  while (begin > 0 && kept < kKeptBytes) {
    const size_t newline = begin < 2 ? bytes.npos : bytes.rfind('\n', begin - 2);
    const size_t line = newline == bytes.npos ? 0 : newline + 1;
    kept += std::min(begin - line, kKeptOfLine);
    begin = line;
  }
  return begin;
}

}  // namespace

void LineCutter::AddUnit(absl::string_view rest, absl::string_view end, std::string* out) {
  if (terminal_ != nullptr) {
    if (terminal_->holds_bar) out->append(kEraseLine.data(), kEraseLine.size());
    terminal_->holds_bar = end == "\r";
  }
  // Not StrAppend, which fills with zeros first: every byte of the output passes here.
  if (shown_ == 0) out->append(prefix_);
  out->append(pending_, std::exchange(shown_, 0));
  out->append(rest.data(), rest.size()).append(end.data(), end.size());
  pending_.clear();
}

std::string LineCutter::Feed(absl::string_view bytes) {
  if (prefix_.empty() && !always_cuts_) {
    if (!bytes.empty()) mid_line_ = bytes.back() != '\n';
    return std::string(bytes);
  }
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4 + prefix_.size());
  if (after_cr_ && absl::ConsumePrefix(&bytes, "\n")) {
    out += '\n';
    in_bar_ = false;
    if (terminal_ != nullptr) terminal_->holds_bar = false;
  }
  if (!bytes.empty() || !out.empty()) after_cr_ = false;
  AddLines(bytes, &out);
  if (terminal_ != nullptr && in_bar_ && !pending_.empty() && pending_.size() <= kMaxBarBytes) {
    const std::string bar = pending_;
    AddUnit("", "\r", &out);
    pending_ = bar;  // The bar may continue.
  }
  return out;
}

void LineCutter::AddLines(absl::string_view bytes, std::string* out) {
  // The next position of each, so that no byte is looked at twice.
  size_t lf = bytes.find('\n');
  size_t cr = bytes.find('\r');
  for (size_t begin = 0; begin < bytes.size();) {
    if (lf < begin) lf = bytes.find('\n', begin);
    if (cr < begin) cr = bytes.find('\r', begin);
    const size_t end = std::min(lf, cr);
    const size_t room = kMaxLineBytes - pending_.size();
    if (std::min(end, bytes.size()) - begin > room) {
      AddUnit(bytes.substr(begin, room), prefix_.empty() ? "" : "\n", out);
      begin += room;
      continue;
    }
    if (end == absl::string_view::npos) {
      absl::StrAppend(&pending_, bytes.substr(begin));
      return;
    }
    const absl::string_view line = bytes.substr(begin, end - begin);
    const bool crlf = cr == end && lf == end + 1;
    const absl::string_view terminator = bytes.substr(end, crlf ? 2 : 1);
    begin = end + terminator.size();
    in_bar_ = terminator == "\r";
    // A bare '\r' begins a progress bar: there is nothing to show yet. Without a prefix and a
    // terminal the bytes stay what they are.
    const bool exact = prefix_.empty() && terminal_ == nullptr;
    if (exact || !in_bar_ || !line.empty() || !pending_.empty()) {
      AddUnit(line, terminator, out);
      after_cr_ = in_bar_ && begin == bytes.size();
    }
  }
}

std::string LineCutter::ShowPending() {
  if (in_bar_ || pending_.size() <= shown_ || pending_.size() > kMaxBarBytes) return "";
  std::string out;
  if (terminal_ != nullptr && std::exchange(terminal_->holds_bar, false)) {
    out.append(kEraseLine.data(), kEraseLine.size());
  }
  if (shown_ == 0) out.append(prefix_);
  out.append(pending_, shown_);
  shown_ = pending_.size();
  return out;
}

std::string LineCutter::Finish(bool keeps_end) {
  if (std::exchange(mid_line_, false) && !keeps_end) return "\n";
  std::string out;
  if (!pending_.empty()) AddUnit("", keeps_end ? "" : "\n", &out);
  return out;
}

std::string LineFilter::Feed(absl::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t lf = bytes.find('\n');
    const size_t size = std::min(lf == absl::string_view::npos ? lf : lf + 1, bytes.size());
    absl::StrAppend(&pending_, bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (lf == absl::string_view::npos && pending_.size() < kMaxLineBytes) break;
    const bool wanted = std::any_of(words_.begin(), words_.end(), [this](const std::string& word) {
      return absl::StrContains(pending_, word);
    });
    if (wanted) absl::StrAppend(&out, prefix_, pending_, lf == absl::string_view::npos ? "\n" : "");
    pending_.clear();
  }
  return out;
}

std::string JournalCutter::Entry(absl::string_view line) const {
  JournalFields fields = {{"MESSAGE", absl::StrCat(prefix_, LastState(line))}};
  fields.insert(fields.end(), fields_.begin(), fields_.end());
  return JournalEntry(fields);
}

std::vector<std::string> JournalCutter::Feed(absl::string_view bytes) {
  std::vector<std::string> entries;
  while (!bytes.empty()) {
    const size_t lf = bytes.find('\n');
    const size_t size = std::min({lf, bytes.size(), kMaxLine - pending_.size()});
    absl::StrAppend(&pending_, bytes.substr(0, size));
    bytes.remove_prefix(size);
    if (!absl::ConsumePrefix(&bytes, "\n") && pending_.size() < kMaxLine) break;
    for (std::string& entry : Finish()) entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::string> JournalCutter::Finish() {
  const std::string line = std::exchange(pending_, "");
  if (line.empty()) return {};
  return {Entry(line)};
}

void OutputTail::AddOfLine(absl::string_view piece) {
  if (line_bytes_ >= kKeptOfLine) return;
  size_t size = std::min(piece.size(), kKeptOfLine - line_bytes_);
  while (size < piece.size() && (static_cast<unsigned char>(piece[size]) & 0xC0) == 0x80) ++size;
  absl::StrAppend(&bytes_, piece.substr(0, size));
  line_bytes_ += size;
}

void OutputTail::Add(absl::string_view bytes) {
  if (const size_t begin = BeginOfLastLines(bytes); begin > 0) {
    bytes.remove_prefix(begin);
    bytes_.clear();
    line_bytes_ = 0;
  }
  while (!bytes.empty()) {
    const size_t end = bytes.find_first_of("\r\n");
    AddOfLine(bytes.substr(0, end));
    if (end == bytes.npos) break;
    bytes_.push_back(bytes[end]);
    line_bytes_ = 0;
    bytes.remove_prefix(end + 1);
  }
  // This is rare, so that the cost of moving bytes stays small.
  if (bytes_.size() > 2 * kKeptBytes) bytes_.erase(0, bytes_.size() - kKeptBytes);
}

std::string OutputTail::LongText() const {
  absl::string_view bytes = bytes_;
  absl::ConsumeSuffix(&bytes, "\n");
  std::vector<std::string> printable;
  for (const absl::string_view line : absl::StrSplit(bytes, '\n')) {
    printable.push_back(Printable(LastState(line)));
  }
  return absl::StrJoin(printable, "\n");
}

std::string OutputTail::Text() const {
  std::string text = LongText();
  size_t begin = text.size();
  for (size_t lines = 0; lines < kMaxTailLines && begin > 0; ++lines) {
    begin = text.rfind('\n', begin - 1);
    if (begin == std::string::npos) break;
  }
  if (begin != std::string::npos && begin < text.size()) text.erase(0, begin + 1);
  if (text.size() <= kMaxTailBytes) return text;
  // Start at a line if one begins near, else at a character.
  size_t start = text.size() - kMaxTailBytes;
  const size_t newline = text.find('\n', start);
  if (newline != std::string::npos && newline - start < kMaxTailBytes / 2) {
    start = newline + 1;
  } else {
    while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) ++start;
  }
  return text.substr(start);
}

}  // namespace hlaunch
