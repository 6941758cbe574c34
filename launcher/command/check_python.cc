// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/command/check_python.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/workers/fork_server/python_side.h"
#include "launcher/environment/python/find_python.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr char kMark[] =
    "hlaunch's answer: ";  // Before it stands what the user's own start prints.
constexpr char kListMark[] = "hlaunch's list: ";  // Then those of its arguments that are installed.
constexpr char kQuestion[] =
    "import os, sys\n"
    "from importlib.util import find_spec\n"
    "try:\n"
    "    from importlib.metadata import version\n"
    "    torch = version('torch')\n"
    "except Exception:\n"
    "    torch = 'unknown' if find_spec('torch') else ''\n"
    // See launcher/command/adopt.
    "off = '', '0', 'off', 'no', 'false'\n"
    "adopted = os.environ.get('HLAUNCH_TORCHRUN', '').lower() not in off and (\n"
    "    find_spec('hlaunch_adopt') or find_spec('hlaunch_autoload'))\n"
    "print(\"hlaunch's answer: \" + '%d.%d.%d' % sys.version_info[:3], torch,\n"
    "      'adopted' if adopted else '')\n"
    "print(\"hlaunch's list: \" + ' '.join(name for name in sys.argv[1:] if find_spec(name)))\n";

CheckResult Unknown(std::string reason) {
  CheckResult result;
  result.name = "python";
  result.state = CheckState::kUnknown;
  result.reason = std::move(reason);
  return result;
}

}  // namespace

CheckResult PythonResult(const std::string& python, const ToolOutput& answer) {
  const size_t at = answer.text.rfind(kMark);
  if (!answer.problem.empty() || at == std::string::npos) {
    return Unknown(absl::StrCat(python, " does not say its version",
                                answer.problem.empty() ? "" : ": ", answer.problem));
  }
  const std::string line = answer.text.substr(at + sizeof kMark - 1);
  const std::vector<std::string> words = absl::StrSplit(line.substr(0, line.find('\n')), ' ');
  const std::string torch = words.size() < 2 ? "" : words[1];
  const bool adopted = words.size() > 2 && words[2] == "adopted";
  CheckResult result;
  result.name = "python";
  result.reason = absl::StrCat(python, " is Python ", words[0], ", ",
                               torch.empty()        ? "without torch"
                               : torch == "unknown" ? "with a torch that does not say its version"
                                                    : absl::StrCat("with torch ", torch),
                               adopted ? ", whose agent's jobs hlaunch runs" : "");
  const size_t list = line.find(kListMark);
  const std::string names = list == line.npos ? "" : line.substr(list + sizeof kListMark - 1);
  const std::vector<std::string> preload =
      absl::StrSplit(names.substr(0, names.find('\n')), ' ', absl::SkipEmpty());
  if (!preload.empty()) {
    absl::StrAppend(&result.reason, "; --preload auto can import ", absl::StrJoin(preload, ", "));
  }
  nlohmann::ordered_json detail = {{"path", python}, {"version", words[0]}};
  detail["adopted"] = adopted;
  detail["torch"] = torch.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(torch);
  detail["preload"] = preload;
  result.detail = detail.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return result;
}

PythonCheck::PythonCheck(asio::io_context& loop, const Environment& environment,
                         std::function<void(CheckResult)> done) {
  const absl::StatusOr<std::string> python = FindPython(environment);
  if (!python.ok()) {
    done(Unknown(std::string(python.status().message())));
    return;
  }
  std::vector<std::string> question = {*python, "-c", kQuestion};
  question.insert(question.end(), std::begin(kKnownToFork), std::end(kKnownToFork));
  question_.emplace(loop, question, kPatience,
                    [python = *python, done = std::move(done)](const ToolOutput& answer) {
                      done(PythonResult(python, answer));
                    });
}

}  // namespace hlaunch
