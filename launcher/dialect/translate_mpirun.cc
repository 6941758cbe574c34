// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/dialect/translate_mpirun.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "launcher/dialect/mpirun_words.h"
#include "launcher/options/option_table.h"
#include "launcher/words/printable.h"
#include "launcher/words/spelling.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using Words = absl::Span<const std::string>;

constexpr char kMpiexecTimeout[] = "MPIEXEC_TIMEOUT";  // Hydra and Open MPI.
constexpr char kHydraHostFile[] = "HYDRA_HOST_FILE";

bool IsHelp(string_view word) {
  return word == "-h" || word == "--help" || word == "-help" || word == "-?";
}

absl::Status Unknown(const std::string& typed) {
  std::vector<std::string> known;
  for (const MpirunWord& word : MpirunWords()) {
    for (const string_view name : absl::StrSplit(word.names, ", ")) known.emplace_back(name);
  }
  for (const OptionRow& row : OptionTable()) known.emplace_back(row.name);
  const std::string word = PrintableLine(typed.substr(0, typed.find('=')));
  const std::string near = NearestSpelling(word, known);
  return InvalidArgumentError(
      absl::StrCat("unknown option ", word, "; ",
                   near.empty() ? "see mpirun --help" : absl::StrCat("did you mean ", near, "?")));
}

// Walks over the words of one line, up to its program.
class Reader {
 public:
  Reader(Words words, bool by_that_name) : words_(words) { line_.every_word = by_that_name; }

  absl::Status Read();

  const MpirunLine& line() const { return line_; }
  Words rest() const { return words_.subspan(next_); }
  bool wants_help() const { return wants_help_; }
  bool has(string_view option) const {
    return std::any_of(line_.words.begin(), line_.words.end(), [option](string_view word) {
      return word.substr(0, word.find('=')) == option;
    });
  }

 private:
  // Whether another word of the line is to be read.
  bool AtOption() const {
    return next_ < words_.size() && words_[next_].size() > 1 && words_[next_][0] == '-' &&
           words_[next_] != "--";
  }

  // An option of hlaunch's own, with its value.
  void PassOn(bool takes_value) {
    const bool apart = takes_value && !absl::StrContains(words_[next_], "=");
    line_.words.push_back(words_[next_++]);
    if (apart && next_ < words_.size()) line_.words.push_back(words_[next_++]);
  }

  absl::StatusOr<std::vector<std::string>> ValuesOf(const MpirunWord& word);
  absl::Status Take(const MpirunWord& word);

  const Words words_;
  MpirunLine line_;
  size_t next_ = 0;
  bool wants_help_ = false;
};

absl::StatusOr<std::vector<std::string>> Reader::ValuesOf(const MpirunWord& word) {
  const std::string& typed = words_[next_];
  size_t left = word.num_values();
  std::vector<std::string> values;
  if (const size_t equals = typed.find('='); equals != std::string::npos) {
    if (left != 1) {
      return InvalidArgumentError(absl::StrCat(PrintableLine(typed), ": leave out what follows ="));
    }
    values.push_back(typed.substr(equals + 1));
    left = 0;
  }
  for (; left > 0 && next_ + 1 < words_.size(); --left) values.push_back(words_[++next_]);
  // Hydra's -genv NAME VALUE.
  const bool may_be_apart = absl::EndsWith(typed, "env") && !absl::EndsWith(typed, "set-env");
  if (may_be_apart && left == 0 && !absl::StrContains(values[0], "=") &&
      next_ + 1 < words_.size()) {
    absl::StrAppend(&values[0], "=", words_[++next_]);
  }
  if (left > 0 || (values.size() == 1 && values[0].empty())) {
    return InvalidArgumentError(absl::StrCat(PrintableLine(typed.substr(0, typed.find('='))),
                                             " needs a value, ", word.value));
  }
  ++next_;
  return values;
}

absl::Status Reader::Take(const MpirunWord& word) {
  const std::string typed = words_[next_].substr(0, words_[next_].find('='));
  if (word.verdict == MpirunVerdict::kRefused) {
    return InvalidArgumentError(absl::StrCat(PrintableLine(typed), ": ", word.said));
  }
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<std::string> values, ValuesOf(word));
  if (word.option != nullptr) {
    line_.words.push_back(values.empty() ? word.option : absl::StrCat(word.option, "=", values[0]));
    return absl::OkStatus();
  }
  const absl::Status taken = word.take(values, line_);
  if (taken.ok()) return taken;
  const std::string shown = absl::StrJoin(values, " ");
  return InvalidArgumentError(
      absl::StrCat(typed, " '", PrintableLine(shown), "': ", taken.message()));
}

absl::Status Reader::Read() {
  while (AtOption()) {
    const std::string& typed = words_[next_];
    const OptionRow* const own = FindOption(typed);
    const MpirunWord* word = FindMpirunWord(typed);
    if (line_.every_word && IsHelp(typed)) {
      wants_help_ = true;
      return absl::OkStatus();
    }
    if (line_.every_word && typed == "-V") {
      line_.words.emplace_back("--version");
      ++next_;
      continue;
    }
    // By its own name hlaunch's words come first, and its reader knows -n.
    const bool number = typed == "-n" || typed == "-np";
    if (!line_.every_word && word != nullptr && (own != nullptr || word->under_that_name)) {
      word = nullptr;
    }
    if (!line_.every_word && number) {
      PassOn(true);
    } else if (word != nullptr) {
      HLAUNCH_RETURN_IF_ERROR(Take(*word));
    } else if (own != nullptr) {
      PassOn(own->takes_value());
    } else if (line_.every_word) {
      return Unknown(typed);
    } else {
      return absl::OkStatus();  // Its reader says what is wrong.
    }
  }
  return absl::OkStatus();
}

// Whether these hosts are this one, so that no other is to be reached.
bool AreHere(string_view hosts) {
  for (const string_view host : absl::StrSplit(hosts, ',')) {
    const string_view name = host.substr(0, host.find(':'));
    if (name != "localhost" && name != "127.0.0.1") return false;
  }
  return true;
}

// How many ranks "localhost:2,localhost" stands for.
std::string SlotsHere(string_view hosts) {
  const std::vector<string_view> each = absl::StrSplit(hosts, ',');
  const size_t colon = hosts.find(':');
  if (each.size() == 1 && colon != hosts.npos) return std::string(hosts.substr(colon + 1));
  return absl::StrCat(each.size());
}

using List = std::vector<std::string>;

void AddHosts(const MpirunLine& line, List& words) {
  if (!line.hostfile.empty()) words.push_back(absl::StrCat("--hostfile=", line.hostfile));
  if (line.hosts.empty()) return;
  words.push_back(absl::StrCat(line.hostfile.empty() ? "--hosts=" : "--include=", line.hosts));
}

void AddNumber(const MpirunLine& line, bool elsewhere, List& words) {
  if (!line.ranks.empty()) words.insert(words.end(), {"-n", line.ranks});
  // On one host the number of all is that of the host.
  const bool counts = !line.per_node.empty() && (line.ranks.empty() || elsewhere);
  if (counts) words.push_back(absl::StrCat("--nproc-per-node=", line.per_node));
  const bool none = line.ranks.empty() && line.per_node.empty() && !elsewhere;
  if (none && line.every_word) words.emplace_back("--nproc-per-node=cpu");
}

// What mpirun has by itself, and hlaunch by an option; what is typed comes behind it.
List Beginning(const MpirunLine& line) {
  List words = {"hlaunch"};
  if (!line.every_word) return words;
  words.insert(words.end(), {"--no-python", "--oversubscribe", "--console=all"});
  if (line.reads_stdin) words.emplace_back("--stdin=0");
  if (!line.verbose && !line.tells) words.emplace_back("--quiet");
  words.push_back(absl::StrCat("--log-prefix=", line.prefix.empty() ? "none" : line.prefix));
  return words;
}

List WordsOf(MpirunLine line) {
  if (line.every_word && line.hostfile.empty() && !line.hosts.empty() && AreHere(line.hosts)) {
    if (line.ranks.empty() && line.per_node.empty()) line.ranks = SlotsHere(line.hosts);
    line.hosts.clear();
  }
  List words = Beginning(line);
  words.insert(words.end(), line.words.begin(), line.words.end());
  if (!line.every_word && !line.prefix.empty()) {
    words.push_back(absl::StrCat("--log-prefix=", line.prefix));
  }
  AddHosts(line, words);
  AddNumber(line, !line.hosts.empty() || !line.hostfile.empty(), words);
  if (!line.cores.empty()) {
    words.push_back(absl::StrCat("--bind=core:", line.cores));
  } else if (!line.bind.empty()) {
    words.push_back(absl::StrCat("--bind=", line.bind));
  }
  return words;
}

}  // namespace

bool IsMpirunName(string_view argv0) {
  const string_view name = argv0.substr(argv0.rfind('/') + 1);
  return name == "mpirun" || name == "mpiexec";
}

absl::StatusOr<TranslatedLine> TranslateMpirun(Words words, const Environment& environment) {
  Reader reader(words, /*by_that_name=*/true);
  HLAUNCH_RETURN_IF_ERROR(reader.Read());
  TranslatedLine translated;
  if (reader.wants_help()) {
    translated.text_to_print = MpirunHelp();
    return translated;
  }
  MpirunLine line = reader.line();
  const Words rest = reader.rest();
  if (std::find(rest.begin(), rest.end(), ":") != rest.end()) {
    return InvalidArgumentError(
        "':' begins a second program, and all ranks of hlaunch run one; start a script that "
        "chooses by PMI_RANK or RANK");
  }
  if (rest.empty() && line.words.empty()) {
    return InvalidArgumentError("no program given; usage: mpirun [options] program [args...]");
  }
  const std::string timeout = environment.Get(kMpiexecTimeout);
  if (!timeout.empty() && !reader.has("--timeout")) {
    line.words.push_back(absl::StrCat("--timeout=", timeout));
  }
  if (line.hosts.empty() && line.hostfile.empty()) line.hostfile = environment.Get(kHydraHostFile);
  translated.words = WordsOf(line);
  if (!rest.empty() && rest.front() != "--") translated.words.emplace_back("--");
  translated.words.insert(translated.words.end(), rest.begin(), rest.end());
  translated.remarks = line.remarks;
  return translated;
}

absl::StatusOr<TranslatedLine> TranslateWithin(Words words) {
  Reader reader(words, /*by_that_name=*/false);
  HLAUNCH_RETURN_IF_ERROR(reader.Read());
  TranslatedLine translated;
  translated.words = WordsOf(reader.line());
  translated.words.insert(translated.words.end(), reader.rest().begin(), reader.rest().end());
  translated.remarks = reader.line().remarks;
  return translated;
}

}  // namespace hlaunch
