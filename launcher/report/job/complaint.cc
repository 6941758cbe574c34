// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/complaint.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/text/printable.h"
#include "rendezvous/round/cause/first_cause.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxBytes = 300;
// The error about the first module that Python imports.
constexpr absl::string_view kNoLibrary = "No module named 'encodings'";

// A line with one of these tells why a program ended.
constexpr absl::string_view kSigns[] = {
    "error while loading shared libraries: ",  // the program loader
    "symbol lookup error: ",                   // the program loader
    ": not found",                             // shells
    ": command not found",                     // bash
    "can't open file",                         // Python
    "No module named ",                        // python -m
    "Fatal Python error: ",                    // Python, before the script
    ": error: ",                               // argparse
    "panicked at ",                            // Rust
    "Permission denied",                       // shells
};

// Python prints "sys.prefix = '/opt/python9'" when it does not find its own library.
std::string OfMisledPython(const std::vector<absl::string_view>& lines) {
  constexpr absl::string_view kName = "sys.prefix = ";
  for (const absl::string_view line : lines) {
    const size_t at = line.find(kName);
    if (at == line.npos) continue;
    return absl::StrCat("Python finds no standard library below ",
                        PrintableLine(line.substr(at + kName.size())),
                        ", where PYTHONHOME or its installation has it");
  }
  return "";
}

bool EndsInCarriageReturn(absl::string_view line) {
  return absl::StrContains(line, "\\r\xe2\x80\x99: No such file") ||  // env
         absl::StrContains(line, "\\r': No such file") ||             // env, in ASCII
         absl::StrContains(line, "^M: bad interpreter");              // bash
}

}  // namespace

std::string ComplaintIn(absl::string_view tail) {
  const std::vector<absl::string_view> lines = absl::StrSplit(tail, '\n');
  if (absl::StrContains(tail, kNoLibrary)) {
    if (std::string prefix = OfMisledPython(lines); !prefix.empty()) return prefix;
  }
  for (size_t i = lines.size(); i-- > 0;) {
    if (EndsInCarriageReturn(lines[i])) {
      return absl::StrCat("the script's first line ends in CR LF: ", PrintableLine(lines[i]));
    }
    const bool tells =
        std::any_of(std::begin(kSigns), std::end(kSigns),
                    [&](absl::string_view sign) { return absl::StrContains(lines[i], sign); });
    if (tells) return PrintableLine(absl::StripAsciiWhitespace(lines[i]).substr(0, kMaxBytes));
  }
  return "";
}

std::string OwnWords(const WorkerFailure& failure) {
  std::string exception = ExceptionOf(failure);
  if (failure.signal != 0) return exception;
  if (!exception.empty() && !absl::StrContains(exception, kNoLibrary)) return exception;
  std::string complaint = ComplaintIn(failure.log_tail);
  return complaint.empty() ? exception : complaint;
}

}  // namespace hlaunch
