// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/names_mpi4py.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "launcher/environment/mpi/text_of_file.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kModule = "mpi4py";
constexpr size_t kMostSources = 64;
constexpr size_t kMostEntries = 1024;  // Of a folder.

std::set<std::string> EntriesOf(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end && names.size() < kMostEntries; entry.increment(error)) {
    names.insert(entry->path().filename().string());
  }
  return names;
}

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
    const std::string first(name.substr(0, name.find('.')));
    if (!first.empty() && !MayHave(root, first)) return;
    std::string path = root;
    for (const absl::string_view part : absl::StrSplit(name, '.', absl::SkipEmpty())) {
      absl::StrAppend(&path, "/", part);
      Add(absl::StrCat(path, ".py"));
      Add(absl::StrCat(path, "/__init__.py"));
    }
    Add(absl::StrCat(path, "/__main__.py"));
  }

  // Whether a module of this name may be in `folder`, which is read once: most imports are of
  // installed packages, and a look at each costs time on a shared file system.
  bool MayHave(const std::string& folder, const std::string& module) {
    auto [found, is_new] = entries_.try_emplace(folder);
    if (is_new) found->second = EntriesOf(folder);
    const std::set<std::string>& names = found->second;
    return names.size() == kMostEntries || names.count(module) != 0 ||
           names.count(absl::StrCat(module, ".py")) != 0;
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
  std::map<std::string, std::set<std::string>> entries_;  // Of folders that were read.
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
