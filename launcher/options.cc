// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "launcher/spelling.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;
using std::chrono::duration_cast;
using std::chrono::seconds;

constexpr int kMaxNodes = 65536;
constexpr int kMaxWorkers = 4096;  // On one node.
constexpr int kMaxRestarts = 1'000'000;
constexpr double kMaxSeconds = 365.0 * 24 * 3600;
constexpr size_t kMaxJobId = 256;

// One option: the only place that knows its spelling, its help and how its value is read.
struct Row {
  const char* group;  // Heading in --help; empty: the same as above.
  const char* short_name;
  const char* name;   // With dashes; the spelling with underscores follows from it.
  const char* value;  // What --help calls the value; empty: a flag.
  const char* help;
  absl::Status (*set)(string_view value, Options& options);  // Errors do not repeat the name.
};

bool ToInt(string_view text, int min, int max, int* out) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  return digits && absl::SimpleAtoi(text, out) && *out >= min && *out <= max;
}

absl::Status SetNnodes(string_view text, Options& options) {
  const size_t colon = text.find(':');
  const string_view max_text = colon == text.npos ? text : text.substr(colon + 1);
  int min = 0, max = 0;
  if (!ToInt(text.substr(0, colon), 1, kMaxNodes, &min) || !ToInt(max_text, 1, kMaxNodes, &max)) {
    return InvalidArgumentError(
        absl::StrCat("expected N or MIN:MAX from 1 to ", kMaxNodes, ", such as 2 or 1:4"));
  }
  if (min > max) {
    return InvalidArgumentError(
        absl::StrCat("MIN is greater than MAX; did you mean ", max, ":", min, "?"));
  }
  options.min_nodes = min;
  options.max_nodes = max;
  return absl::OkStatus();
}

absl::Status SetNproc(string_view text, Options& options) {
  if (text == "auto" || text == "cpu") {
    options.nproc = std::nullopt;
    return absl::OkStatus();
  }
  if (text == "gpu" || text == "hpu" || text == "xpu") {
    return InvalidArgumentError(
        "counting devices is not supported yet; give the number of workers, such as 8");
  }
  int nproc = 0;
  if (!ToInt(text, 1, kMaxWorkers, &nproc)) {
    return InvalidArgumentError(
        absl::StrCat("expected a number from 1 to ", kMaxWorkers, ", auto or cpu"));
  }
  options.nproc = nproc;
  return absl::OkStatus();
}

absl::Status SetEndpoint(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.rdzv_endpoint, ParseEndpoint(text, kDefaultRdzvPort));
  return absl::OkStatus();
}

absl::Status SetBackend(string_view text, Options& options) {
  if (text != "static" && text != "c10d") {
    return InvalidArgumentError("expected static or c10d; other backends are not needed here");
  }
  options.rdzv_backend = std::string(text);
  return absl::OkStatus();
}

absl::Status SetJobId(string_view text, Options& options) {
  const bool printable = std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
  if (text.empty() || text.size() > kMaxJobId || !printable) {
    return InvalidArgumentError(
        absl::StrCat("expected 1 to ", kMaxJobId, " printable characters without spaces"));
  }
  options.rdzv_id = std::string(text);
  return absl::OkStatus();
}

absl::Status SetMasterAddr(string_view text, Options& options) {
  HLAUNCH_ASSIGN_OR_RETURN(options.master_addr, ParseHost(text));
  return absl::OkStatus();
}

absl::Status SetMasterPort(string_view text, Options& options) {
  int port = 0;
  if (!ToInt(text, 0, 65535, &port)) {
    return InvalidArgumentError("expected a port from 0 to 65535");
  }
  options.master_port = static_cast<uint16_t>(port);
  return absl::OkStatus();
}

absl::Status SetNodeRank(string_view text, Options& options) {
  int rank = 0;
  if (!ToInt(text, 0, kMaxNodes - 1, &rank)) {
    return InvalidArgumentError("expected a number from 0 to the number of nodes less 1");
  }
  options.node_rank = rank;
  return absl::OkStatus();
}

absl::Status SetMaxRestarts(string_view text, Options& options) {
  if (!ToInt(text, 0, kMaxRestarts, &options.max_restarts)) {
    return InvalidArgumentError(absl::StrCat("expected a number from 0 to ", kMaxRestarts));
  }
  return absl::OkStatus();
}

absl::Status SetTokenFile(string_view text, Options& options) {
  if (text.empty()) return InvalidArgumentError("the name of the file is missing");
  options.token_file = std::string(text);
  return absl::OkStatus();
}

// 30, 1.5, 30s, 5m or 2h.
absl::Status SetDuration(string_view text, double min_seconds, Duration* out) {
  string_view number = text;
  double unit = 1;
  if (absl::ConsumeSuffix(&number, "m")) {
    unit = 60;
  } else if (absl::ConsumeSuffix(&number, "h")) {
    unit = 3600;
  } else {
    absl::ConsumeSuffix(&number, "s");
  }
  double value = 0;
  const bool plain =
      !number.empty() && (absl::ascii_isdigit(number.back()) || number.back() == '.');
  if (!plain || !absl::SimpleAtod(number, &value) || !std::isfinite(value) ||
      value * unit < min_seconds || value * unit > kMaxSeconds) {
    return InvalidArgumentError(absl::StrCat("expected a time from ", min_seconds,
                                             "s to 8760h, such as 30, 1.5, 30s, 5m or 2h"));
  }
  *out = duration_cast<Duration>(std::chrono::duration<double>(value * unit));
  return absl::OkStatus();
}

absl::Status Flag(bool* flag) {
  *flag = true;
  return absl::OkStatus();
}

const Row kRows[] = {
    {"Nodes and workers", "", "--nnodes", "N|MIN:MAX", "number of nodes (1)", SetNnodes},
    {"", "", "--nproc-per-node", "N|auto|cpu",
     "workers on this node (1); auto and cpu: one per usable CPU", SetNproc},
    {"", "", "--max-restarts", "N", "restarts after failures, for the whole job (0)",
     SetMaxRestarts},
    {"Where the nodes meet", "", "--rdzv-endpoint", "HOST[:PORT]",
     "the same on every node (port 29400); its owner hosts", SetEndpoint},
    {"", "", "--rdzv-id", "ID", "id of the job, the same on every node", SetJobId},
    {"", "", "--rdzv-backend", "NAME", "static or c10d, as for torchrun", SetBackend},
    {"", "", "--node-rank", "N", "this node's rank; else the rendezvous decides", SetNodeRank},
    {"", "", "--master-addr", "HOST", "static form: node rank 0 hosts the rendezvous there",
     SetMasterAddr},
    {"", "", "--master-port", "PORT", "static form: its port, and MASTER_PORT of workers (29500)",
     SetMasterPort},
    {"", "", "--standalone", "", "one node that meets nobody; the same as --nnodes 1",
     [](string_view, Options&) { return absl::OkStatus(); }},
    {"", "", "--token-file", "FILE",
     "secret that all nodes share (HLAUNCH_TOKEN_FILE, HLAUNCH_TOKEN)", SetTokenFile},
    {"The program", "-m", "--module", "", "the script is a Python module's name",
     [](string_view, Options& options) { return Flag(&options.module); }},
    {"", "", "--no-python", "", "run the program itself, without Python",
     [](string_view, Options& options) { return Flag(&options.no_python); }},
    {"", "", "--stdin", "", "local rank 0 reads standard input (a lone worker always does)",
     [](string_view, Options& options) { return Flag(&options.use_stdin); }},
    {"Times", "", "--join-timeout", "S", "wait this long for the nodes to come (600)",
     [](string_view text, Options& options) {
       return SetDuration(text, 1, &options.join_timeout);
     }},
    {"", "", "--shutdown-timeout", "S", "from SIGTERM to SIGKILL for workers (30)",
     [](string_view text, Options& options) {
       return SetDuration(text, 0, &options.shutdown_timeout);
     }},
    {"", "", "--loss-limit", "S", "a node cut off for so long stops its workers (30)",
     [](string_view text, Options& options) { return SetDuration(text, 1, &options.loss_limit); }},
    {"Output", "-v", "--verbose", "", "say more",
     [](string_view, Options& options) {
       options.log_level = LogLevel::kDebug;
       return absl::OkStatus();
     }},
    {"", "-q", "--quiet", "", "say only warnings and errors",
     [](string_view, Options& options) {
       options.log_level = LogLevel::kWarning;
       return absl::OkStatus();
     }},
    {"", "", "--version", "", "print the version",
     [](string_view, Options&) { return absl::OkStatus(); }},
    {"", "-h", "--help", "", "print this text",
     [](string_view, Options&) { return absl::OkStatus(); }},
};

// What torchrun has and hlaunch does not: a clear word instead of "unknown".
constexpr const char* kNotYet[] = {
    "--rdzv-conf",
    "--monitor-interval",
    "--start-method",
    "--role",
    "--log-dir",
    "--redirects",
    "--tee",
    "--local-ranks-filter",
    "--duplicate-stdout-filters",
    "--local-addr",
    "--duplicate-stderr-filters",
    "--event-log-handler",
    "--logs-specs",
    "--numa-binding",
    "--signals-to-handle",
    "--run-path",
    "--virtual-local-rank",
    "--print-completion",
    "-r",
    "-t",
};

std::string Underscored(string_view name) {
  return absl::StrCat("--", absl::StrReplaceAll(name.substr(2), {{"-", "_"}}));
}

std::string HelpText() {
  std::string text =
      "usage: hlaunch [options] script.py [args...]\n\n"
      "Starts a distributed job, one command per node, and keeps it alive.\n";
  for (const Row& row : kRows) {
    if (row.group[0] != '\0') absl::StrAppend(&text, "\n", row.group, ":\n");
    const std::string names = absl::StrCat(row.short_name[0] != '\0' ? row.short_name : "  ",
                                           row.short_name[0] != '\0' ? ", " : "  ", row.name,
                                           row.value[0] != '\0' ? " " : "", row.value);
    absl::StrAppendFormat(&text, "  %-32s %s\n", names, row.help);
  }
  absl::StrAppend(
      &text,
      "\nLong options may be written with underscores; times take s, m or h (30, 1.5s, 5m).\n"
      "\nExamples:\n"
      "  hlaunch --nproc-per-node 8 train.py --lr 0.1     one host, 8 workers\n"
      "  hlaunch --nnodes 2 --nproc-per-node 8 train.py   prints the command for the other host\n"
      "  hlaunch --nnodes 2 --rdzv-endpoint node0 --rdzv-id 17 train.py          on both hosts\n"
      "  hlaunch --nnodes 2 --node-rank 1 --master-addr node0 train.py           as with torchrun\n"
      "\nExit code: that of the first worker that failed, or 128 + its signal; 2 wrong usage,\n"
      "126 and 127 program not runnable or not found, 200 to 208 hlaunch's own (see README.md).\n");
  return text;
}

absl::Status UnknownOption(const std::string& word) {
  const std::string typed = word.substr(0, word.find('='));
  const std::string name = absl::StrReplaceAll(typed, {{"_", "-"}});
  for (const char* known : kNotYet) {
    if (name == known) {
      return InvalidArgumentError(absl::StrCat(
          typed, " is an option of torchrun that hlaunch does not have yet; leave it out"));
    }
  }
  std::vector<std::string> known;
  for (const Row& row : kRows) known.push_back(row.name);
  const bool mpirun = name == "-n" || name == "-np" || name == "--np" || name == "-c";
  const std::string near = mpirun ? "--nproc-per-node" : NearestSpelling(name, known);
  return InvalidArgumentError(absl::StrCat(
      "unknown option ", typed,
      near.empty() ? "; see hlaunch --help" : absl::StrCat("; did you mean ", near, "?")));
}

struct RawOptions {
  std::vector<std::pair<const Row*, std::string>> given;  // In the order of kRows.
  std::vector<std::string> rest;  // From the first word that no option took.
};

// All that CLI11 does for us. It throws, and it drops an empty value (`--rdzv-id=` takes the
// next word), hence the check of the words it took.
absl::StatusOr<RawOptions> Tokenize(const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();
  std::vector<CLI::Option*> options;
  for (const Row& row : kRows) {
    std::string names = row.name;
    if (Underscored(row.name) != row.name) absl::StrAppend(&names, ",", Underscored(row.name));
    if (row.short_name[0] != '\0') absl::StrAppend(&names, ",", row.short_name);
    CLI::Option* option = row.value[0] == '\0' ? app.add_flag(names) : app.add_option(names);
    if (row.value[0] != '\0') option->expected(1)->type_size(1);
    options.push_back(option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast));
  }
  RawOptions raw;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    raw.rest = app.remaining();
    for (size_t i = 0; i < options.size(); ++i) {
      if (options[i]->count() > 0) raw.given.emplace_back(&kRows[i], options[i]->results().back());
    }
  } catch (const CLI::ArgumentMismatch&) {
    return InvalidArgumentError(absl::StrCat(words.back(), " needs a value; see hlaunch --help"));
  } catch (const CLI::Error& error) {
    return InvalidArgumentError(absl::StrCat("wrong option: ", error.what()));
  }
  for (size_t i = 0; i + raw.rest.size() < words.size(); ++i) {
    if (absl::StartsWith(words[i], "--") && absl::EndsWith(words[i], "=")) {
      return InvalidArgumentError(absl::StrCat(words[i], " has no value; see hlaunch --help"));
    }
  }
  return raw;
}

// The values are fine one by one; do they fit together?
absl::Status CheckTogether(const Options& options, bool standalone, bool verbose_and_quiet) {
  if (verbose_and_quiet)
    return InvalidArgumentError("--verbose and --quiet: leave one of them out");
  if (options.module && options.no_python) {
    return InvalidArgumentError(
        "--module runs Python and --no-python runs none: leave one of them out");
  }
  if (options.node_rank.has_value() && *options.node_rank >= options.max_nodes) {
    return InvalidArgumentError(absl::StrCat("--node-rank ", *options.node_rank, ": with --nnodes ",
                                             options.max_nodes, " ranks go from 0 to ",
                                             options.max_nodes - 1));
  }
  if (options.max_nodes == 1) return absl::OkStatus();
  if (standalone) {
    return InvalidArgumentError(absl::StrCat("--standalone is for one node and --nnodes says ",
                                             options.max_nodes, ": leave one of them out"));
  }
  const bool has_place = options.rdzv_endpoint.has_value() || !options.master_addr.empty();
  const char* needs_place = options.node_rank.has_value()      ? "--node-rank"
                            : options.master_port.has_value()  ? "--master-port"
                            : options.rdzv_backend == "static" ? "--rdzv-backend static"
                                                               : nullptr;
  if (needs_place != nullptr && !has_place) {
    return InvalidArgumentError(
        absl::StrCat(needs_place, " needs the place where the nodes meet: add --master-addr HOST",
                     options.rdzv_backend == "static" ? "" : " or --rdzv-endpoint HOST"));
  }
  if (options.rdzv_endpoint.has_value() && options.rdzv_endpoint->port == 0) {
    return InvalidArgumentError(
        "--rdzv-endpoint: several nodes must know the port; write one instead of 0, such as 29400");
  }
  if (options.master_port == 0) {
    return InvalidArgumentError(
        "--master-port: several nodes must know the port; write one instead of 0, such as 29500");
  }
  return absl::OkStatus();
}

bool Given(const RawOptions& raw, string_view name) {
  return std::any_of(raw.given.begin(), raw.given.end(),
                     [name](const auto& given) { return name == given.first->name; });
}

}  // namespace

absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  HLAUNCH_ASSIGN_OR_RETURN(RawOptions raw, Tokenize(words));
  Options options;
  if (Given(raw, "--help")) {
    options.text_to_print = HelpText();
    return options;
  }
  if (Given(raw, "--version")) {
    options.text_to_print = absl::StrCat("hlaunch ", HLAUNCH_VERSION, "\n");
    return options;
  }
  options.option_words.assign(words.begin(), words.end() - raw.rest.size());
  options.option_words.insert(options.option_words.begin(), argc > 0 ? argv[0] : "hlaunch");
  if (!raw.rest.empty() && raw.rest.front() == "--") raw.rest.erase(raw.rest.begin());
  if (!raw.rest.empty() && absl::StartsWith(raw.rest.front(), "-")) {
    return UnknownOption(raw.rest.front());
  }
  if (raw.rest.empty() || raw.rest.front().empty()) {
    return InvalidArgumentError("no script given; usage: hlaunch [options] script.py [args...]");
  }
  options.command = raw.rest;
  for (const auto& [row, value] : raw.given) {
    if (row->value[0] == '\0' && value != "true") {
      return InvalidArgumentError(absl::StrCat(row->name, " takes no value; leave out ", value));
    }
    const absl::Status status = row->set(value, options);
    if (!status.ok()) {
      return InvalidArgumentError(absl::StrCat(row->name, " '", value, "': ", status.message()));
    }
  }
  HLAUNCH_RETURN_IF_ERROR(CheckTogether(options, Given(raw, "--standalone"),
                                        Given(raw, "--verbose") && Given(raw, "--quiet")));
  return options;
}

}  // namespace hlaunch
