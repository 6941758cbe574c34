// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/line_folder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent/output/output_lines.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kTraceback = "Traceback (most recent call last):";

// Returns `line` without the "[rank3]: " that torch puts before the lines of a traceback.
absl::string_view WithoutTorchPrefix(absl::string_view line) {
  absl::string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "[rank")) return line;
  const size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == absl::string_view::npos) return line;
  rest.remove_prefix(digits);
  return absl::ConsumePrefix(&rest, "]: ") || absl::ConsumePrefix(&rest, "]:") ? rest : line;
}

// Replaces each run of digits by one '#'.
std::string WithoutNumbers(absl::string_view text) {
  std::string masked;
  for (const char c : text) {
    const bool digit = absl::ascii_isdigit(static_cast<unsigned char>(c));
    if (!digit) masked += c;
    if (digit && (masked.empty() || masked.back() != '#')) masked += '#';
  }
  return masked;
}

}  // namespace

void LineFolder::Add(LineSource source, absl::string_view bytes, Instant now) {
  while (!bytes.empty()) {
    const size_t lf = bytes.find('\n');
    std::string& unended = sources_[source].unended;
    if (lf == absl::string_view::npos) {
      unended.append(bytes.data(), bytes.size());
      if (unended.size() >= kMaxLineBytes) EndLine(source, now);
      return;
    }
    if (unended.empty()) {
      AddLine(source, bytes.substr(0, lf + 1), now);
    } else {
      unended.append(bytes.data(), lf + 1);
      AddLine(source, std::exchange(unended, ""), now);
    }
    bytes.remove_prefix(lf + 1);
  }
}

void LineFolder::EndLine(LineSource source, Instant now) {
  const std::string unended = TakeUnended(source);
  if (!unended.empty()) AddLine(source, absl::StrCat(unended, "\n"), now);
}

std::string LineFolder::TakeUnended(LineSource source) {
  const auto found = sources_.find(source);
  return found == sources_.end() ? "" : std::exchange(found->second.unended, "");
}

std::optional<Instant> LineFolder::due() const {
  if (!first_) return std::nullopt;
  if (bytes_ > kMaxBytes) return Instant::min();
  const Instant since = traceback_ ? std::max(*first_, *traceback_) : *first_;
  return std::min(since + kHold, *first_ + kLongestHold);
}

void LineFolder::AddLine(LineSource source, absl::string_view line, Instant now) {
  Lines& of = sources_[source];
  if (!first_) first_ = now;
  bytes_ += line.size();
  const absl::string_view words = WithoutTorchPrefix(line);
  const bool begins = absl::StartsWith(words, kTraceback);
  if (begins) EndTraceback(of);
  if (begins || of.in_traceback) traceback_ = now;
  if (!of.in_traceback) {
    of.blocks.push_back({std::string(line), begins ? "" : std::string(line), count_++});
    of.in_traceback = begins;
    return;
  }
  of.blocks.back().text.append(line.data(), line.size());
  const bool goes_on = words.empty() || words[0] == ' ' || words[0] == '\t';
  if (!goes_on) EndTraceback(of);
}

void LineFolder::EndTraceback(Lines& lines) {
  if (!std::exchange(lines.in_traceback, false)) return;
  lines.blocks.back().key = WithoutNumbers(lines.blocks.back().text);
}

// All held blocks, to be taken one by one. A word is a number that stands for a key: equal keys
// have the same word.
class LineFolder::Queues {
 public:
  explicit Queues(std::map<LineSource, Lines>& sources) {
    std::map<std::pair<int, std::string>, size_t> words;  // By the stream and the key.
    for (auto& [source, lines] : sources) {
      if (lines.blocks.empty()) continue;
      Queue queue{source, std::exchange(lines.blocks, {}), {}};
      for (Held& block : queue.blocks) {
        const size_t word =
            words.emplace(std::pair(source.fd, std::move(block.key)), words.size()).first->second;
        queue.words.push_back(word);
        held_.resize(words.size());
        ++held_[word];
      }
      queues_.push_back(std::move(queue));
    }
    in_front_.resize(held_.size());
    for (const Queue& queue : queues_) ++in_front_[queue.words.front()];
  }

  // Takes the next block to be shown, with all ranks that have it in front; unset if all are taken.
  std::optional<Block> Take() {
    const Queue* const next = Next();
    if (next == nullptr) return std::nullopt;
    const size_t word = next->words.front();
    Block block{next->blocks.front().text, next->source.fd, {}};
    std::vector<const Queue*> came_forward;
    for (Queue& queue : queues_) {
      if (queue.words.empty() || queue.words.front() != word) continue;
      block.ranks.push_back(queue.source.rank);
      queue.blocks.pop_front();
      queue.words.pop_front();
      --held_[word];
      --in_front_[word];
      came_forward.push_back(&queue);
    }
    for (const Queue* queue : came_forward) {
      if (!queue->words.empty()) ++in_front_[queue->words.front()];
    }
    return block;
  }

 private:
  struct Queue {
    LineSource source;
    std::deque<Held> blocks;
    std::deque<size_t> words;
  };

  // The rank whose first block is shown next. Prefers the oldest block that no rank has further
  // down, so that equal blocks meet. If all ranks wait for each other, takes the oldest block.
  const Queue* Next() const {
    const auto order = [this](const Queue& queue) {
      const size_t word = queue.words.front();
      return std::pair(in_front_[word] < held_[word], queue.blocks.front().number);
    };
    const Queue* next = nullptr;
    for (const Queue& queue : queues_) {
      if (queue.words.empty()) continue;
      if (next == nullptr || order(queue) < order(*next)) next = &queue;
    }
    return next;
  }

  std::vector<Queue> queues_;
  std::vector<int> held_;      // By word: how many blocks have it.
  std::vector<int> in_front_;  // How many of these are the first of their rank.
};

std::vector<LineFolder::Block> LineFolder::Take() {
  for (auto& [source, lines] : sources_) EndTraceback(lines);
  Queues queues(sources_);
  std::vector<Block> blocks;
  while (std::optional<Block> block = queues.Take()) blocks.push_back(std::move(*block));
  first_.reset();
  traceback_.reset();
  bytes_ = 0;
  return blocks;
}

}  // namespace hlaunch
