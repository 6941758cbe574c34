// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/parameter_files.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::string_view;

constexpr const char* kSiteFiles[] = {"openmpi-mca-params.conf", "prte-mca-params.conf"};
// Debian's, and Fedora's.
constexpr const char* kSystemFolders[] = {"/etc/openmpi", "/etc/openmpi-x86_64", "/etc"};

// The folders etc of the Open MPI that would be started, the likeliest first.
std::vector<std::string> SiteFolders(const Environment& environment) {
  std::vector<std::string> folders;
  for (const char* prefix : {"OPAL_PREFIX", "OMPI_HOME", "MPI_ROOT"}) {
    const std::string folder = environment.Get(prefix);
    if (!folder.empty()) folders.push_back(absl::StrCat(folder, "/etc"));
  }
  for (string_view folder : absl::StrSplit(environment.Get("PATH"), ':', absl::SkipEmpty())) {
    if (absl::ConsumeSuffix(&folder, "/bin")) folders.push_back(absl::StrCat(folder, "/etc"));
  }
  folders.insert(folders.end(), std::begin(kSystemFolders), std::end(kSystemFolders));
  return folders;
}

string_view WithoutQuotes(string_view value) {
  const bool quoted = value.size() > 1 && value.front() == value.back() &&
                      (value.front() == '"' || value.front() == '\'');
  return quoted ? value.substr(1, value.size() - 2) : value;
}

}  // namespace

std::vector<std::string> ParameterFiles(const Environment& environment) {
  std::vector<std::string> files;
  for (const char* variable : {"OMPI_MCA_mca_base_param_files", "OMPI_MCA_mca_param_files"}) {
    for (const string_view file :
         absl::StrSplit(environment.Get(variable), absl::ByAnyChar(":,"), absl::SkipEmpty())) {
      files.emplace_back(file);
    }
  }
  if (!files.empty()) return files;
  const std::string home = environment.Get("HOME");
  if (!home.empty()) {
    for (const char* folder : {".openmpi", ".prte"}) {
      files.push_back(absl::StrCat(home, "/", folder, "/mca-params.conf"));
    }
  }
  for (const std::string& folder : SiteFolders(environment)) {
    for (const char* file : kSiteFiles) files.push_back(absl::StrCat(folder, "/", file));
  }
  return files;
}

std::vector<FileParameter> ParametersIn(string_view text, const std::string& file) {
  std::vector<FileParameter> parameters;
  for (const string_view line : absl::StrSplit(text, '\n')) {
    const string_view bare = absl::StripAsciiWhitespace(line);
    const size_t equals = bare.find('=');
    if (bare.empty() || bare[0] == '#' || equals == bare.npos) continue;
    const string_view name = absl::StripAsciiWhitespace(bare.substr(0, equals));
    const string_view value = WithoutQuotes(absl::StripAsciiWhitespace(bare.substr(equals + 1)));
    if (!value.empty()) {
      parameters.push_back({file, std::string(name), std::string(value)});
    }
  }
  return parameters;
}

absl::Status TakeParameterFiles(const Environment& environment, const ReadTextFn& read,
                                MpirunLine& line) {
  std::vector<std::string> seen;  // Only the first Open MPI's, and the first PRRTE's, count.
  for (const std::string& file : ParameterFiles(environment)) {
    const std::string name = file.substr(file.rfind('/') + 1);
    const bool of_site = std::any_of(std::begin(kSiteFiles), std::end(kSiteFiles),
                                     [&name](const char* each) { return name == each; });
    if (of_site && std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    const absl::StatusOr<std::string> text = read(file);
    if (!text.ok()) continue;
    seen.push_back(name);
    HLAUNCH_RETURN_IF_ERROR(TakeFileParameters(ParametersIn(*text, file), line));
  }
  return absl::OkStatus();
}

}  // namespace hlaunch
