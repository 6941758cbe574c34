// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/mpi/names_mpi4py.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/mpi/text_of_file.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kModule = "mpi4py";
constexpr size_t kMostSources = 64;

// Reads sources and what they import, the nearest first.
class Sources {
 public:
  explicit Sources(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  void AddRoot(std::string root) { roots_.insert(roots_.begin(), std::move(root)); }

  bool AnyNames(absl::string_view code, const std::string& folder) {
    if (Names(code, folder)) return true;
    while (!waiting_.empty()) {
      const std::string path = waiting_.front();
      waiting_.pop_front();
      if (Names(TextOfFile(path), FolderOf(path))) return true;
    }
    return false;
  }

  // Adds the files of the module `name`, "a.b", and of the packages around it.
  void AddModule(absl::string_view name) {
    for (const std::string& root : roots_) AddBelow(root, name);
  }

 private:
  bool Names(absl::string_view code, const std::string& folder) {
    if (absl::StrContains(code, kModule)) return true;
    for (absl::string_view line : absl::StrSplit(code, '\n')) {
      line = absl::StripAsciiWhitespace(line);
      if (absl::ConsumePrefix(&line, "import ")) {
        for (const absl::string_view part : absl::StrSplit(line, ',')) AddModule(FirstWord(part));
      } else if (absl::ConsumePrefix(&line, "from ")) {
        AddFrom(line, folder);
      }
    }
    return false;
  }

  // Adds what `line` imports, for example "a.b import c" or ". import c".
  void AddFrom(absl::string_view line, std::string folder) {
    const size_t at = line.find(" import ");
    if (at == line.npos) return;
    absl::string_view package = absl::StripAsciiWhitespace(line.substr(0, at));
    const bool relative = absl::ConsumePrefix(&package, ".");
    while (relative && absl::ConsumePrefix(&package, ".")) absl::StrAppend(&folder, "/..");
    for (const absl::string_view part :
         absl::StrSplit(line.substr(at + 8), absl::ByAnyChar(",()"), absl::SkipWhitespace())) {
      const std::string name = absl::StrCat(package, package.empty() ? "" : ".", FirstWord(part));
      if (relative) AddBelow(folder, name);
      if (!relative) AddModule(name);
    }
  }

  static absl::string_view FirstWord(absl::string_view text) {
    text = absl::StripAsciiWhitespace(text);
    return text.substr(0, text.find_first_of(" \t#;\r"));
  }

  void AddBelow(const std::string& root, absl::string_view name) {
    std::string path = root;
    for (const absl::string_view part : absl::StrSplit(name, '.', absl::SkipEmpty())) {
      absl::StrAppend(&path, "/", part);
      Add(absl::StrCat(path, ".py"));
      Add(absl::StrCat(path, "/__init__.py"));
    }
    Add(absl::StrCat(path, "/__main__.py"));
  }

  void Add(const std::string& path) {
    if (known_.count(path) != 0 || found_ == kMostSources) return;
    known_.insert(path);
    if (!IsFile(path)) return;
    ++found_;
    waiting_.push_back(path);
  }

  std::vector<std::string> roots_;
  std::deque<std::string> waiting_;
  std::set<std::string> known_;
  size_t found_ = 0;
};

bool TakesAValue(absl::string_view option) {
  return option == "-W" || option == "-X" || option == "--check-hash-based-pycs";
}

}  // namespace

bool NamesMpi4py(const std::vector<std::string>& argv, const Environment& environment) {
  Sources sources(absl::StrSplit(environment.Get("PYTHONPATH"), ':', absl::SkipEmpty()));
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string next = i + 1 < argv.size() ? argv[i + 1] : "";
    if (argv[i] == "-m" || argv[i] == "-c") sources.AddRoot(".");
    if (argv[i] == "-c") return sources.AnyNames(absl::StrReplaceAll(next, {{";", "\n"}}), ".");
    if (argv[i] == "-m") {
      if (absl::StartsWith(next, kModule)) return true;
      sources.AddModule(next);
      return sources.AnyNames("", ".");
    }
    if (TakesAValue(argv[i])) ++i;
    if (TakesAValue(argv[i - 1]) || absl::StartsWith(argv[i], "-")) continue;
    sources.AddRoot(FolderOf(argv[i]));
    return sources.AnyNames(TextOfFile(argv[i]), FolderOf(argv[i]));
  }
  return false;
}

}  // namespace hlaunch
