// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/mpirun/translate_deepspeed.h"

#include <climits>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "launcher/cli/options/help_text.h"
#include "launcher/cli/options/option_table.h"
#include "launcher/cli/options/read_words.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/spelling.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using List = std::vector<std::string>;

constexpr char kUsualHostfile[] = "/job/hostfile";
constexpr char kVariablesFile[] = ".deepspeed_env";
constexpr char kUsualPort[] = "29500";

// The words, and what becomes of each.
const OptionRow kRows[] = {
    {"Hosts", "-H", "--hostfile", "FILE", "the hosts, one per line (/job/hostfile, if it is there)",
     nullptr},
    {"", "-i", "--include", "HOST[:SLOTS]@...",
     "of the file, only these hosts; localhost:0,2 without a file: these devices", nullptr},
    {"", "-e", "--exclude", "HOST@...", "of the file, all but these hosts", nullptr},
    {"", "", "--num-nodes", "N", "the first N hosts of the file", nullptr},
    {"", "", "--num-gpus", "N", "workers of each host (its slots, else its devices)", nullptr},
    {"", "", "--num-accelerators", "N", "the same", nullptr},
    {"", "", "--launcher", "NAME", "not needed; slurm without a file: the hosts of Slurm's job",
     nullptr},
    {"", "", "--launcher-args", "ARGS", "refused, unless it is empty", nullptr},
    {"", "", "--ssh-port", "N", "ssh's own port on the hosts", nullptr},
    {"", "", "--no-ssh", "", "each host is started by hand, with --node_rank", nullptr},
    {"", "", "--node-rank", "N", "this host's place in the file", nullptr},
    {"", "", "--master-addr", "HOST", "where hosts meet that are started by hand (the first host)",
     nullptr},
    {"", "", "--master-port", "PORT", "its port, and MASTER_PORT of one host (29500)", nullptr},
    {"", "", "--no-ssh-check", "", "not needed", nullptr},
    {"", "", "--force-multi", "", "not needed", nullptr},
    {"The program", "", "--module", "", "the script is a module's name", nullptr},
    {"", "", "--no-python", "", "run the program itself, without Python", nullptr},
    {"", "", "--no-local-rank", "", "do not give the script --local_rank=N", nullptr},
    {"Else", "", "--enable-each-rank-log", "DIR", "each rank's output goes to a file below DIR",
     nullptr},
    {"", "", "--bind-cores-to-rank", "", "each rank gets its share of the host's cores", nullptr},
    {"", "", "--bind-core-list", "LIST", "refused: use hlaunch --bind slots:A;B", nullptr},
    {"", "", "--save-pid", "", "not needed: see hlaunch ps", nullptr},
    {"", "", "--venv-script", "FILE", "refused: hosts run the Python of the same path", nullptr},
    {"", "", "--autotuning", "WORD", "refused: it starts jobs of its own; run DeepSpeed's own",
     nullptr},
    {"", "", "--elastic-training", "", "refused: use hlaunch --nnodes MIN:MAX", nullptr},
    {"", "", "--min-elastic-nodes", "N", "refused, like --elastic_training", nullptr},
    {"", "", "--max-elastic-nodes", "N", "refused, like --elastic_training", nullptr},
    {"", "", "--log-level", "LEVEL", "not needed", nullptr},
    {"", "-q", "--quiet", "", "say only warnings and errors", nullptr},
    {"", "-h", "--help", "", "print this text", nullptr},
};

std::string HelpOfDeepspeed() {
  return absl::StrCat(
      "usage: deepspeed [options] script.py [args...]\n\n"
      "hlaunch in the place of DeepSpeed's launcher.\n\n",
      DescribeOptions(kRows),
      "\nhlaunch --help shows what else hlaunch can do.\n"
      "\nExamples:\n"
      "  deepspeed --num_gpus 8 train.py --deepspeed ds.json\n"
      "  deepspeed --hostfile hosts train.py\n"
      "\nExit code: that of the first rank that failed; 2 wrong usage.\n");
}

// Refuses what the row of a word calls refused.
absl::Status CheckRefused(const TypedWords& typed) {
  for (const TypedOption& option : typed.given) {
    const bool empty = option.value.empty() && option.row->takes_value();
    if (empty || !absl::StartsWith(option.row->help, "refused")) continue;
    return InvalidArgumentError(absl::StrCat(Underscored(option.row->name), " '",
                                             PrintableLine(option.value), "' is ",
                                             option.row->help));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(const TypedWords& typed, const char* name, int least) {
  int number = 0;
  const std::string value = typed.Get(name, "-1");  // As there, -1 is as if it were not typed.
  if (value == "-1" || ParseInt(value, least, INT_MAX, &number)) return absl::OkStatus();
  return InvalidArgumentError(absl::StrCat(Underscored(name), " '", PrintableLine(value),
                                           "': expected a number, at least ", least));
}

// The number that was typed, as text; empty if there is none.
std::string NumberOf(const TypedWords& typed, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string value = typed.Get(name, "-1");
    if (value != "-1") return value;
  }
  return "";
}

// "a@b" as "a,b". Slots of a host of the file are refused.
absl::StatusOr<std::string> HostsOf(const char* name, const std::string& spec) {
  List hosts;
  for (const string_view each : absl::StrSplit(spec, '@', absl::SkipEmpty())) {
    if (absl::StrContains(each, ":")) {
      return InvalidArgumentError(
          absl::StrCat(name, " '", PrintableLine(spec), "': hlaunch takes whole hosts of a ",
                       "hostfile; give the number of their workers there, as slots=N"));
    }
    hosts.emplace_back(each);
  }
  return absl::StrJoin(hosts, ",");
}

// The words for ranks on this host alone.
absl::StatusOr<List> WordsHere(const TypedWords& typed) {
  List words = {"--nnodes=1", "--cluster=none"};
  const std::string number = NumberOf(typed, {"--num-gpus", "--num-accelerators"});
  std::string devices = typed.Get("--include", "");
  if (!typed.Get("--exclude", "").empty()) {
    return InvalidArgumentError(
        "--exclude without a hostfile: name the devices that are to be used, as in --include "
        "localhost:0,2");
  }
  if (!devices.empty()) {
    const bool here = absl::StartsWith(devices, "localhost:") && !absl::StrContains(devices, "@");
    if (!here || !number.empty()) {
      return InvalidArgumentError(absl::StrCat(
          "--include '", PrintableLine(devices),
          here ? "': leave it or --num_gpus out" : "' without a hostfile: expected localhost:0,2"));
    }
    words.push_back(absl::StrCat("--devices=", devices.substr(devices.find(':') + 1)));
  }
  const std::string nodes = NumberOf(typed, {"--num-nodes"});
  if (!nodes.empty() && nodes != "1") {
    return InvalidArgumentError(
        absl::StrCat("--num_nodes ", nodes, " needs --hostfile FILE, which names the hosts"));
  }
  words.push_back(absl::StrCat("--nproc-per-node=", number.empty() ? "auto" : number));
  if (typed.Has("--master-port")) {
    words.push_back(absl::StrCat("--master-port=", typed.Get("--master-port", "")));
  }
  return words;
}

// The variables that files name for other hosts, as options.
List VariablesOf(const Environment& environment, const ReadTextFn& read) {
  List words;
  const std::string named = environment.Get("DS_ENV_FILE");
  const std::string home = environment.Get("HOME");
  for (const std::string& path : {named.empty() ? absl::StrCat(home, "/", kVariablesFile) : named,
                                  std::string(kVariablesFile)}) {
    const absl::StatusOr<std::string> text = read(path);
    if (!text.ok()) continue;
    for (const string_view line : absl::StrSplit(*text, '\n')) {
      const string_view entry = absl::StripAsciiWhitespace(line);
      if (absl::StrContains(entry, "=") && entry.front() != '#') {
        words.push_back(absl::StrCat("--export-var=", entry));
      }
    }
  }
  return words;
}

// hlaunch adds the slots of a host's lines up; DeepSpeed takes a second line for a mistake.
absl::Status CheckEachHostOnce(const std::string& file, const ReadTextFn& read) {
  const absl::StatusOr<std::string> text = read(file);
  if (!text.ok()) return absl::OkStatus();  // Whoever takes the hosts says why.
  std::set<string_view> seen;
  for (const string_view line : absl::StrSplit(*text, '\n')) {
    const List words =
        absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    const string_view host = line.substr(line.find(words[0]), words[0].size());
    if (seen.insert(host).second) continue;
    return InvalidArgumentError(absl::StrCat(file, " names ", PrintableLine(host),
                                             " twice; write one line with all of its slots"));
  }
  return absl::OkStatus();
}

// The hosts of the file that the line wants, in its order.
absl::StatusOr<std::vector<TargetHost>> WantedHosts(const TypedWords& typed,
                                                    const std::string& file,
                                                    const ReadTextFn& read) {
  HLAUNCH_RETURN_IF_ERROR(CheckEachHostOnce(file, read));
  HostWish wish;
  wish.hostfile = file;
  HLAUNCH_ASSIGN_OR_RETURN(wish.include, HostsOf("--include", typed.Get("--include", "")));
  HLAUNCH_ASSIGN_OR_RETURN(wish.exclude, HostsOf("--exclude", typed.Get("--exclude", "")));
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<TargetHost> hosts, FindHosts(wish, read));
  size_t first = hosts.size();
  if (const std::string nodes = NumberOf(typed, {"--num-nodes"}); !nodes.empty()) {
    first = static_cast<size_t>(std::stoi(nodes));
  }
  if (first > hosts.size()) {
    return InvalidArgumentError(
        absl::StrCat("--num_nodes ", first, ": ", file, " has ", hosts.size(), " hosts to take"));
  }
  hosts.resize(first);
  return hosts;
}

std::string LoginsOf(const std::vector<TargetHost>& hosts) {
  return absl::StrJoin(hosts, ",", [](std::string* out, const TargetHost& host) {
    absl::StrAppend(out, host.Login());
  });
}

// The words for this host of several that are started by hand.
absl::StatusOr<List> WordsByHand(const TypedWords& typed, const std::vector<TargetHost>& hosts) {
  int rank = -1;
  ParseInt(typed.Get("--node-rank", "-1"), 0, INT_MAX, &rank);
  if (rank < 0 || static_cast<size_t>(rank) >= hosts.size()) {
    return InvalidArgumentError(absl::StrCat("--no_ssh needs --node_rank, from 0 to ",
                                             hosts.size() - 1, ", for each host of the file"));
  }
  List words = {absl::StrCat("--nnodes=", hosts.size()), absl::StrCat("--node-rank=", rank),
                absl::StrCat("--master-addr=", typed.Get("--master-addr", hosts[0].name)),
                absl::StrCat("--master-port=", typed.Get("--master-port", kUsualPort)),
                "--cluster=none"};
  const std::optional<int> slots = hosts[static_cast<size_t>(rank)].slots;
  const std::string number = NumberOf(typed, {"--num-gpus", "--num-accelerators"});
  words.push_back(absl::StrCat("--nproc-per-node=", !number.empty() ? number
                                                    : slots         ? absl::StrCat(*slots)
                                                                    : "auto"));
  return words;
}

// The words for hosts that hlaunch starts.
List WordsForHosts(const TypedWords& typed, const std::string& file,
                   const std::vector<TargetHost>& hosts, TranslatedLine& line) {
  List words = {absl::StrCat("--hostfile=", file), absl::StrCat("--include=", LoginsOf(hosts))};
  const std::string number = NumberOf(typed, {"--num-gpus", "--num-accelerators"});
  if (!number.empty()) words.push_back(absl::StrCat("--nproc-per-node=", number));
  for (const char* name : {"--master-addr", "--master-port"}) {
    if (typed.Has(name)) {
      line.remarks.push_back(
          absl::StrCat(Underscored(name), " is not needed: hlaunch starts the hosts itself"));
    }
  }
  return words;
}

// The words for the hosts of a Slurm job, all of which are taken.
absl::StatusOr<List> WordsInSlurm(const TypedWords& typed) {
  for (const char* name : {"--num-nodes", "--include", "--exclude"}) {
    if (!typed.Has(name)) continue;
    return InvalidArgumentError(
        absl::StrCat(Underscored(name), " with --launcher slurm: the ranks ",
                     "run on all hosts of the job; ask Slurm for fewer, or ", "give --hostfile"));
  }
  List words = {"--hosts=allocation"};
  const std::string number = NumberOf(typed, {"--num-gpus", "--num-accelerators"});
  if (!number.empty()) words.push_back(absl::StrCat("--nproc-per-node=", number));
  return words;
}

absl::StatusOr<List> WordsOfPlace(const TypedWords& typed, const Environment& environment,
                                  const std::string& directory, const ReadTextFn& read,
                                  TranslatedLine& line) {
  std::string file = typed.Get("--hostfile", "");
  if (file.empty() && read(kUsualHostfile).ok()) file = kUsualHostfile;
  const bool in_slurm = file.empty() && typed.Get("--launcher", "") == "slurm" &&
                        !environment.Get("SLURM_JOB_ID").empty();
  if (in_slurm) return WordsInSlurm(typed);
  if (file.empty()) return WordsHere(typed);
  HLAUNCH_ASSIGN_OR_RETURN(const std::vector<TargetHost> hosts, WantedHosts(typed, file, read));
  if (typed.Has("--no-ssh")) return WordsByHand(typed, hosts);
  List words = WordsForHosts(typed, file, hosts, line);
  for (std::string& word : VariablesOf(environment, read)) words.push_back(std::move(word));
  words.push_back(
      absl::StrCat("--export-var=PYTHONPATH=", DeepspeedPythonPath(environment, directory)));
  return words;
}

List WordsOfProgram(const TypedWords& typed) {
  List words;
  for (const char* flag : {"--module", "--no-python", "--quiet"}) {
    if (typed.Has(flag)) words.emplace_back(flag);
  }
  if (!typed.Has("--no-local-rank")) words.emplace_back("--pass-local-rank=--local_rank");
  if (typed.Has("--bind-cores-to-rank")) words.emplace_back("--bind=core");
  const std::string logs = typed.Get("--enable-each-rank-log", "None");
  if (logs != "None")
    words.insert(words.end(), {absl::StrCat("--log-dir=", logs), "--redirects=3"});
  return words;
}

}  // namespace

bool IsDeepspeedName(string_view argv0) {
  const string_view name = argv0.substr(argv0.rfind('/') + 1);
  return name == "deepspeed" || name == "ds";
}

std::string DeepspeedPythonPath(const Environment& environment, const std::string& directory) {
  const std::string before = environment.Get("PYTHONPATH");
  return before.empty() ? directory : absl::StrCat(directory, ":", before);
}

absl::StatusOr<TranslatedLine> TranslateDeepspeed(absl::Span<const std::string> words,
                                                  const Environment& environment,
                                                  const std::string& directory,
                                                  const ReadTextFn& read) {
  HLAUNCH_ASSIGN_OR_RETURN(
      const TypedWords typed,
      ReadWords("deepspeed", kRows, List(words.begin(), words.end()), OptionPlace::kBeforeScript));
  TranslatedLine line;
  if (typed.Has("--help")) {
    line.text_to_print = HelpOfDeepspeed();
    return line;
  }
  HLAUNCH_RETURN_IF_ERROR(CheckRefused(typed));
  for (const char* name : {"--num-nodes", "--num-gpus", "--num-accelerators"}) {
    HLAUNCH_RETURN_IF_ERROR(CheckNumber(typed, name, 1));
  }
  HLAUNCH_RETURN_IF_ERROR(CheckNumber(typed, "--node-rank", 0));
  HLAUNCH_RETURN_IF_ERROR(CheckNumber(typed, "--ssh-port", 1));
  if (typed.rest.empty()) {
    return InvalidArgumentError("no script given; usage: deepspeed [options] script.py [args...]");
  }
  if (absl::StartsWith(typed.rest[0], "-")) {
    return UnknownWord(kRows, typed.rest[0], "see deepspeed --help and hlaunch --help");
  }
  HLAUNCH_RETURN_IF_ERROR(CheckDashes(typed.rest[0]));
  line.words = {"hlaunch"};
  HLAUNCH_ASSIGN_OR_RETURN(const List place,
                           WordsOfPlace(typed, environment, directory, read, line));
  for (const List& part : {WordsOfProgram(typed), place, List{"--"}, typed.rest}) {
    line.words.insert(line.words.end(), part.begin(), part.end());
  }
  if (typed.Has("--ssh-port"))
    line.ssh_arguments = absl::StrCat("-p ", typed.Get("--ssh-port", ""));
  return line;
}

}  // namespace hlaunch
