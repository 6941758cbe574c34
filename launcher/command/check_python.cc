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
#include "launcher/text/printable.h"
#include "nlohmann/json.hpp"

namespace hlaunch {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr char kMark[] =
    "hlaunch's answer: ";  // Before it stands what the user's own start prints.
constexpr char kListMark[] = "hlaunch's list: ";  // Then those of its arguments that are installed.
constexpr char kLostMark[] =
    "hlaunch's lost links: ";  // Then the names of adopted links that were replaced.
constexpr char kTorchrunMark[] =
    "hlaunch's torchrun: ";  // Then the path of a torchrun that is not hlaunch.
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
    "try:\n"
    "    import json, shutil, sysconfig\n"
    "    def is_hlaunch(path):\n"
    "        return os.path.basename(os.path.realpath(path)) == 'hlaunch'\n"
    "    path = shutil.which('torchrun')\n"
    "    if path and not is_hlaunch(path):\n"
    "        print(\"hlaunch's torchrun: \" + path)\n"
    "    with open(os.path.join(sysconfig.get_path('purelib'), 'hlaunch_adopt.json')) as file:\n"
    "        links = json.load(file)['links']\n"
    "    print(\"hlaunch's lost links: \" + ' '.join(\n"
    "        name for name in links\n"
    "        if not is_hlaunch(os.path.join(sysconfig.get_path('scripts'), name))))\n"
    "except Exception:\n"
    "    pass\n"
    "print(\"hlaunch's list: \" + ' '.join(name for name in sys.argv[1:] if find_spec(name)))\n";

CheckResult Unknown(std::string reason) {
  CheckResult result;
  result.name = "python";
  result.state = CheckState::kUnknown;
  result.reason = std::move(reason);
  return result;
}

// The rest of the line of `text` that begins with `mark`; empty if there is none.
std::string After(const std::string& text, absl::string_view mark) {
  const size_t at = text.find(absl::StrCat("\n", mark));
  if (at == text.npos) return "";
  const std::string rest = text.substr(at + 1 + mark.size());
  return rest.substr(0, rest.find('\n'));
}

// Names programs of the environment that are not hlaunch, where people might think so.
void TellOfLinks(const std::string& text, bool adopted, CheckResult& result) {
  const std::vector<std::string> lost =
      absl::StrSplit(After(text, kLostMark), ' ', absl::SkipEmpty());
  const std::string torchrun = After(text, kTorchrunMark);
  if (!lost.empty()) {
    result.state = CheckState::kWarn;
    absl::StrAppend(
        &result.reason, "; ", absl::StrJoin(lost, " and "),
        lost.size() == 1 ? " was a link to hlaunch and is" : " were links to hlaunch and are",
        " not any more");
    result.advice =
        "an upgrade of torch writes its torchrun back; say hlaunch adopt again, or hlaunch adopt "
        "--undo";
  } else if (adopted && !torchrun.empty()) {
    absl::StrAppend(&result.reason, "; torchrun in PATH is not hlaunch: ", PrintableLine(torchrun));
  }
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
  const std::vector<std::string> preload =
      absl::StrSplit(After(line, kListMark), ' ', absl::SkipEmpty());
  if (!preload.empty()) {
    absl::StrAppend(&result.reason, "; --preload auto can import ", absl::StrJoin(preload, ", "));
  }
  TellOfLinks(line, adopted, result);
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
