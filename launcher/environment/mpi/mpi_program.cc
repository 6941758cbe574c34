// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/mpi_program.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "launcher/environment/mpi/elf_needs.h"
#include "launcher/environment/mpi/names_mpi4py.h"
#include "launcher/environment/mpi/shell_commands.h"
#include "launcher/environment/mpi/text_of_file.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxLibraries = 128;  // At most this many are looked at.
constexpr int kMaxInterpreters = 4;    // A script's interpreter may be a script.
constexpr int kMostCommands = 64;      // That a wrapper may start.
constexpr size_t kMostNames = 128;     // Looked up in PATH for them.
constexpr absl::string_view kSystemFolders[] = {"/usr/local/lib",
                                                "/lib64",
                                                "/usr/lib64",
                                                "/lib/x86_64-linux-gnu",
                                                "/usr/lib/x86_64-linux-gnu",
                                                "/lib/aarch64-linux-gnu",
                                                "/usr/lib/aarch64-linux-gnu",
                                                "/lib",
                                                "/usr/lib"};
// Libraries of C, C++ and the system. They need no MPI, and most programs need only these.
constexpr absl::string_view kOfSystem[] = {
    "libc.so.",     "libm.so.", "libdl.so.",  "libpthread.so.", "librt.so.",      "libstdc++.so.",
    "libgcc_s.so.", "ld-linux", "linux-vdso", "libz.so.",       "libgfortran.so."};

// A file whose libraries must be looked at.
struct Needy {
  std::string path;
  std::string name;  // The name by which it is needed; empty: the program itself.
};

// The path of the library `name` that `needy` needs; empty if it is not found.
std::string FindLibrary(const std::string& name, const Needy& needy, const ElfNeeds& needs,
                        const std::vector<std::string>& given) {
  std::vector<std::string> folders = given;
  for (const absl::string_view part : absl::StrSplit(needs.search_path, ':', absl::SkipEmpty())) {
    folders.push_back(absl::StrReplaceAll(
        part, {{"$ORIGIN", FolderOf(needy.path)}, {"${ORIGIN}", FolderOf(needy.path)}}));
  }
  for (const absl::string_view folder : kSystemFolders) folders.emplace_back(folder);
  for (const std::string& folder : folders) {
    std::string path = absl::StrCat(folder, "/", name);
    if (IsFile(path)) return path;
  }
  return "";
}

bool IsOfSystem(absl::string_view name) {
  return std::any_of(std::begin(kOfSystem), std::end(kOfSystem),
                     [name](absl::string_view start) { return absl::StartsWith(name, start); });
}

// Looks at `path` and at all libraries that it loads, the nearest first.
MpiProgram LookAtElf(const std::string& path, const Environment& environment) {
  const std::vector<std::string> given =
      absl::StrSplit(environment.Get("LD_LIBRARY_PATH"), ':', absl::SkipEmpty());
  std::deque<Needy> waiting = {{path, ""}};
  std::set<std::string> known;
  while (!waiting.empty() && known.size() < kMaxLibraries) {
    const Needy needy = waiting.front();
    waiting.pop_front();
    const absl::StatusOr<ElfNeeds> needs = ReadElfNeeds(needy.path);
    if (!needs.ok()) continue;
    for (const std::string& name : needs->libraries) {
      const MpiFlavour flavour = FlavourOfLibrary(name);
      if (flavour == MpiFlavour::kNone) continue;
      return {flavour, absl::StrCat(name, needy.name.empty() ? "" : " of ", needy.name),
              FindLibrary(name, needy, *needs, given)};
    }
    for (const std::string& name : needs->libraries) {
      if (IsOfSystem(name) || !known.insert(name).second) continue;
      std::string found = FindLibrary(name, needy, *needs, given);
      if (!found.empty()) waiting.push_back({std::move(found), name});
    }
  }
  return {};
}

// The words of a line as in "#!/usr/bin/env python3"; empty if it is no script.
std::vector<std::string> InterpreterOf(const std::string& start) {
  if (!absl::StartsWith(start, "#!")) return {};
  const absl::string_view line = absl::string_view(start).substr(2, start.find('\n') - 2);
  return absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

// The words behind those of env itself, which may be -S, other options and NAME=VALUE.
std::vector<std::string> BehindEnv(const std::vector<std::string>& words) {
  const auto program = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
    return !absl::StartsWith(word, "-") && !absl::StrContains(word, "=");
  });
  return {program, words.end()};
}

absl::string_view BaseName(absl::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string InPath(const std::string& name, const Environment& environment) {
  if (absl::StrContains(name, "/")) return name;
  for (const absl::string_view folder : absl::StrSplit(environment.Get("PATH"), ':')) {
    std::string path = absl::StrCat(folder, "/", name);
    if (IsFile(path)) return path;
  }
  return name;
}

bool IsPython(const std::string& path) { return absl::StrContains(BaseName(path), "python"); }

bool IsShell(absl::string_view path) {
  for (const char* shell : {"sh", "bash", "dash", "ksh", "zsh", "mksh", "busybox"}) {
    if (BaseName(path) == shell) return true;
  }
  return false;
}

// Programs whose own processes have another launcher.
bool IsLauncher(absl::string_view path) {
  const absl::string_view name = BaseName(path);
  for (const char* start : {"mpirun", "mpiexec", "orterun", "prterun", "prun", "oshrun"}) {
    if (absl::StartsWith(name, start)) return true;
  }
  return name == "srun" || name == "aprun" || name == "jsrun" || name == "hlaunch";
}

// The Open MPI that a wheel has put beside `python`; empty if there is none.
std::string WheelOfOpenMpi(const std::string& python) {
  const std::string path = absl::StrCat(FolderOf(python), "../lib/libmpi.so.40");
  return IsFile(path) ? path : "";
}

// An MPI of MPICH's family finds its server by a port, as any program does.
MpiProgram Mpi4pyOfMpich() { return {MpiFlavour::kNone, "mpi4py"}; }

// The MPI of mpi4py, if there is only one choice: Debian's mpi4py is linked with one library, and a
// wheel loads the one beside it.
MpiProgram LookAtMpi4py(const std::string& python, const Environment& environment) {
  std::error_code error;
  const std::string abi = environment.Get("MPI4PY_MPIABI");
  if (abi == "openmpi") return {MpiFlavour::kOpenMpi, "MPI4PY_MPIABI=openmpi"};
  if (!abi.empty()) return Mpi4pyOfMpich();
  const std::string prefix = absl::StrCat(FolderOf(python), "..");
  if (IsFile(absl::StrCat(prefix, "/lib/libmpi.so.12"))) return Mpi4pyOfMpich();
  const std::string of_wheel = WheelOfOpenMpi(python);
  if (!of_wheel.empty()) return {MpiFlavour::kOpenMpi, of_wheel, of_wheel};
  if (IsFile(absl::StrCat(prefix, "/pyvenv.cfg"))) return {MpiFlavour::kUnknown, "mpi4py"};
  const std::string folder = absl::StrCat(prefix, "/lib/python3/dist-packages/mpi4py");
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::StrContains(path, "/MPI.cpython-")) continue;
    MpiProgram found = LookAtElf(path, environment);
    if (found.flavour == MpiFlavour::kOpenMpi) return found;
    if (found.flavour == MpiFlavour::kPmi) return Mpi4pyOfMpich();
  }
  return {MpiFlavour::kUnknown, "mpi4py"};
}

// The words of a command with a script's interpreters before them, and its program's path.
std::vector<std::string> WithInterpreters(std::vector<std::string> words,
                                          const Environment& environment) {
  for (int depth = 0; depth < kMaxInterpreters && !words.empty(); ++depth) {
    constexpr size_t kLine = 256;
    words[0] = InPath(words[0], environment);
    std::vector<std::string> before = InterpreterOf(TextOfFile(words[0], kLine));
    if (before.empty()) break;
    if (absl::EndsWith(before[0], "/env")) before = BehindEnv(before);
    words.insert(words.begin(), before.begin(), before.end());
  }
  return words;
}

bool IsAssignment(absl::string_view word) {
  const size_t equals = word.find('=');
  return equals != word.npos && word.substr(0, equals).find('/') == word.npos;
}

// A look at one command and at what it may start.
class Look {
 public:
  explicit Look(const Environment& environment) : environment_(environment) {}

  MpiProgram At(std::vector<std::string> words) {
    words = WithInterpreters(std::move(words), environment_);
    if (words.empty()) return {};
    if (IsPython(words[0])) return AtPython(words);
    MpiProgram found = LookAtElf(words[0], environment_);
    if (found.flavour != MpiFlavour::kNone) return found;
    if (!IsShell(words[0])) return Behind(words, 1);
    return AtShell(words);
  }

 private:
  MpiProgram AtPython(const std::vector<std::string>& words) const {
    if (NamesMpi4py(words, environment_)) return LookAtMpi4py(words[0], environment_);
    MpiProgram found = LookAtElf(words[0], environment_);
    if (found.library.empty()) found.library = WheelOfOpenMpi(words[0]);
    return found;
  }

  // Looks at the text of a shell's command or script, and then at its arguments, of which the text
  // may make a command ("$@").
  MpiProgram AtShell(const std::vector<std::string>& words) {
    bool is_text = false;
    for (size_t i = 1; i < words.size(); ++i) {
      if (absl::StartsWith(words[i], "-")) {
        is_text =
            is_text || (!absl::StartsWith(words[i], "--") && absl::StrContains(words[i], 'c'));
        continue;
      }
      ShellScope scope{is_text ? "" : words[i], "", &environment_};
      const std::string text = is_text ? words[i] : TextOfFile(words[i]);
      for (std::vector<std::string> command : CommandsIn(text, kMostCommands)) {
        Follow(command, scope);
        for (std::string& word : command) word = InFolder(Expand(word, scope), scope.folder);
        MpiProgram found = Behind(command, 0);
        if (!found.seen.empty()) return found;
      }
      return Behind(words, i + 1);
    }
    return {};
  }

  // Looks at the first of these words that is a program, together with those after it. What is
  // found there is likely, not certain: a descriptor may not reach it, and it may not run at all.
  MpiProgram Behind(const std::vector<std::string>& words, size_t first) {
    for (size_t i = first; i < words.size(); ++i) {
      const std::string& word = words[i];
      if (absl::StartsWith(word, "-") || IsAssignment(word) || !IsProgram(word)) continue;
      if (IsLauncher(word) || ++commands_ > kMostCommands) return {};
      MpiProgram found = At({words.begin() + static_cast<std::ptrdiff_t>(i), words.end()});
      if (found.flavour == MpiFlavour::kPmi) found.flavour = MpiFlavour::kNone;
      if (found.flavour == MpiFlavour::kOpenMpi) found.flavour = MpiFlavour::kUnknown;
      const std::string whose = absl::StrCat(" of ", BaseName(word));
      const bool is_named = absl::EndsWith(found.seen, whose) || IsPython(word);
      if (!found.seen.empty() && !is_named && !absl::StrContains(found.seen, " of ")) {
        absl::StrAppend(&found.seen, whose);
      }
      return found;
    }
    return {};
  }

  // A relative path as seen from here, if it leads to a file.
  static std::string InFolder(std::string word, const std::string& folder) {
    std::string path = absl::StrCat(folder, word);
    const bool is_there = !word.empty() && word[0] != '/' && !folder.empty() && IsFile(path);
    return is_there ? path : word;
  }

  bool IsProgram(const std::string& word) {
    if (absl::StrContains(word, '/')) return IsFile(word) && ::access(word.c_str(), X_OK) == 0;
    if (looked_up_.size() == kMostNames && looked_up_.count(word) == 0) return false;
    const auto [name, is_new] = looked_up_.try_emplace(word, false);
    if (is_new) name->second = absl::StrContains(InPath(word, environment_), '/');
    return name->second;
  }

  const Environment& environment_;
  int commands_ = 0;
  std::map<std::string, bool> looked_up_;  // Names without a folder: whether PATH has them.
};

}  // namespace

MpiFlavour FlavourOfLibrary(absl::string_view name) {
  for (const absl::string_view start :
       {"libopen-rte.so", "libopen-pal.so", "libmpi.so.40", "libmpi.so.20", "libmpi_cxx.so.40",
        "libmpi_mpifh.so.", "libmpi_usempi", "libmpi_java.so.", "liboshmem.so."}) {
    if (absl::StartsWith(name, start)) return MpiFlavour::kOpenMpi;
  }
  for (const absl::string_view start :
       {"libmpi.so", "libmpich.so", "libmpich-", "libmpifort.so", "libmpicxx.so", "libmpichcxx.so",
        "libmpichfort.so", "libmpi_abi.so", "libmpi_ilp64.so"}) {
    if (absl::StartsWith(name, start)) return MpiFlavour::kPmi;
  }
  return MpiFlavour::kNone;
}

MpiProgram LookForMpi(const std::vector<std::string>& argv, const Environment& environment) {
  return Look(environment).At(argv);
}

}  // namespace hlaunch
