// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/options.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/help_text.h"
#include "launcher/option_table.h"
#include "launcher/printable.h"
#include "launcher/spelling.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

// What torchrun has and hlaunch does not: a clear word instead of "unknown".
constexpr const char* kNotYet[] = {
    "--monitor-interval", "--start-method", "--event-log-handler", "--logs-specs",
    "--numa-binding",     "--run-path",     "--print-completion",
};

std::string Underscored(string_view name) {
  return absl::StrCat("--", absl::StrReplaceAll(name.substr(2), {{"-", "_"}}));
}

absl::Status UnknownOption(const std::string& word) {
  const std::string typed = PrintableLine(word.substr(0, word.find('=')));
  const std::string name = absl::StrReplaceAll(typed, {{"_", "-"}});
  for (const char* known : kNotYet) {
    if (name == known) {
      return InvalidArgumentError(absl::StrCat(
          typed, " is an option of torchrun that hlaunch does not have yet; leave it out"));
    }
  }
  std::vector<std::string> known;
  for (const OptionRow& row : OptionTable()) known.push_back(row.name);
  const bool mpirun = name == "-n" || name == "-np" || name == "--np" || name == "-c";
  const std::string near = mpirun ? "--nproc-per-node" : NearestSpelling(name, known);
  return InvalidArgumentError(absl::StrCat(
      "unknown option ", typed,
      near.empty() ? "; see hlaunch --help" : absl::StrCat("; did you mean ", near, "?")));
}

struct RawOptions {
  std::vector<std::pair<const OptionRow*, std::string>> given;  // In the order of the table.
  std::vector<std::string> rest;  // From the first word that no option took.
};

// All that CLI11 does for us. It throws, and it drops an empty value (`--rdzv-id=` takes the
// next word), hence the check of the words it took.
absl::StatusOr<RawOptions> Tokenize(const std::vector<std::string>& words) {
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();
  std::vector<CLI::Option*> options;
  for (const OptionRow& row : OptionTable()) {
    std::string names = row.name;
    if (Underscored(row.name) != row.name) absl::StrAppend(&names, ",", Underscored(row.name));
    if (row.short_name[0] != '\0') absl::StrAppend(&names, ",", row.short_name);
    CLI::Option* option = row.takes_value() ? app.add_option(names) : app.add_flag(names);
    if (row.takes_value()) option->expected(1)->type_size(1);
    options.push_back(option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast));
  }
  RawOptions raw;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    raw.rest = app.remaining();
    for (size_t i = 0; i < options.size(); ++i) {
      if (options[i]->count() == 0) continue;
      raw.given.emplace_back(&OptionTable()[i], options[i]->results().back());
    }
  } catch (const CLI::ArgumentMismatch&) {
    return InvalidArgumentError(
        absl::StrCat(PrintableLine(words.back()), " needs a value; see hlaunch --help"));
  } catch (const CLI::Error& error) {
    return InvalidArgumentError(absl::StrCat("wrong option: ", error.what()));
  }
  for (size_t i = 0; i + raw.rest.size() < words.size(); ++i) {
    if (absl::StartsWith(words[i], "--") && absl::EndsWith(words[i], "=")) {
      return InvalidArgumentError(
          absl::StrCat(PrintableLine(words[i]), " has no value; see hlaunch --help"));
    }
  }
  return raw;
}

// Whether is_host fits to who hosts anyway.
absl::Status CheckHost(const Options& options, bool has_place) {
  if (!options.is_host.has_value()) return absl::OkStatus();
  if (!has_place && !*options.is_host) {
    return InvalidArgumentError(
        "--rdzv-conf is_host=0: nobody else is named who could host; add --rdzv-endpoint HOST");
  }
  const bool by_rank = options.node_rank.has_value() &&
                       (!options.rdzv_endpoint.has_value() || options.rdzv_backend == "static");
  if (by_rank && *options.is_host != (options.node_rank == 0)) {
    return InvalidArgumentError(absl::StrCat(
        "--rdzv-conf is_host=", *options.is_host ? 1 : 0, " with --node-rank ", *options.node_rank,
        ": in the static form node rank 0 hosts; leave is_host out"));
  }
  return absl::OkStatus();
}

// The values are fine one by one; do they fit together?
absl::Status CheckTogether(const Options& options, bool standalone, bool verbose_and_quiet) {
  if (verbose_and_quiet) {
    return InvalidArgumentError("--verbose and --quiet: leave one of them out");
  }
  if (options.module && options.no_python) {
    return InvalidArgumentError(
        "--module runs Python and --no-python runs none: leave one of them out");
  }
  if (options.node_rank.has_value() && *options.node_rank >= options.max_nodes) {
    return InvalidArgumentError(absl::StrCat("--node-rank ", *options.node_rank, ": with --nnodes ",
                                             options.max_nodes, " ranks go from 0 to ",
                                             options.max_nodes - 1));
  }
  if (options.store_proxy && options.worker_store) {
    return InvalidArgumentError(
        "--store-proxy leads to hlaunch's own store and --master-store worker has none: leave one "
        "of them out");
  }
  if (options.store.limits.value_bytes > options.store.limits.total_bytes) {
    return InvalidArgumentError(absl::StrCat("--store-max-value ", options.store.limits.value_bytes,
                                             " is more than the whole store takes, ",
                                             options.store.limits.total_bytes,
                                             ": raise --store-max-total as well"));
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
  HLAUNCH_RETURN_IF_ERROR(CheckHost(options, has_place));
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
  HLAUNCH_CHECK(argc > 0);
  const std::vector<std::string> words(argv + 1, argv + argc);
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
  options.option_words.assign(argv, argv + argc - static_cast<int>(raw.rest.size()));
  if (!raw.rest.empty() && raw.rest.front() == "--") raw.rest.erase(raw.rest.begin());
  if (!raw.rest.empty() && absl::StartsWith(raw.rest.front(), "-")) {
    return UnknownOption(raw.rest.front());
  }
  if (raw.rest.empty() || raw.rest.front().empty()) {
    return InvalidArgumentError("no script given; usage: hlaunch [options] script.py [args...]");
  }
  options.command = raw.rest;
  for (const auto& [row, value] : raw.given) {
    if (row->is_flag() && value != "true") {
      return InvalidArgumentError(
          absl::StrCat(row->name, " takes no value; leave out ", PrintableLine(value)));
    }
    const absl::Status status = row->set(value, options);
    if (!status.ok()) {
      return InvalidArgumentError(
          absl::StrCat(row->name, " '", PrintableLine(value), "': ", status.message()));
    }
  }
  HLAUNCH_RETURN_IF_ERROR(CheckTogether(options, Given(raw, "--standalone"),
                                        Given(raw, "--verbose") && Given(raw, "--quiet")));
  return options;
}

}  // namespace hlaunch
