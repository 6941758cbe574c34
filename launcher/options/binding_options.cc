// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/options/option_table.h"

namespace hlaunch {
namespace {

using absl::string_view;

absl::Status SetBind(string_view text, Options& options) {
  for (const BindMode mode : {BindMode::kAuto, BindMode::kNone, BindMode::kNuma, BindMode::kSocket,
                              BindMode::kCore, BindMode::kL3}) {
    if (text != BindModeName(mode)) continue;
    options.bind = mode;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("expected auto, none, numa, socket, core or l3");
}

// torchrun's words for the same.
absl::Status SetNumaBinding(string_view text, Options& options) {
  if (text == "node") {
    options.numa_binding = BindMode::kNuma;
  } else if (text == "socket") {
    options.numa_binding = BindMode::kSocket;
  } else if (text == "exclusive") {
    options.numa_binding = BindMode::kCore;
  } else if (text == "core-complex") {
    options.numa_binding = BindMode::kL3;
  } else {
    return absl::InvalidArgumentError("expected node, socket, exclusive or core-complex");
  }
  return absl::OkStatus();
}

const OptionRow kRows[] = {
    {"Binding to CPUs", "", "--bind", "auto|none|numa|socket|core|l3",
     "to those near its device (auto: where no worker loses any)", SetBind},
    {"", "", "--numa-binding", "node|socket|exclusive|core-complex",
     "torchrun's words: as numa, socket, core or l3", SetNumaBinding},
    {"", "", "--report-bindings", "", "draw which worker may run where",
     [](string_view, Options& options) { return SetFlag(&options.report_bindings); }},
};

}  // namespace

absl::Span<const OptionRow> BindingOptions() { return kRows; }

}  // namespace hlaunch
