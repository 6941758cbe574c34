// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/option_table.h"

namespace hlaunch {

const std::vector<OptionRow>& OptionTable() {
  static const std::vector<OptionRow>* const table = [] {
    auto* rows = new std::vector<OptionRow>;
    for (const auto& part : {RendezvousOptions(), WorkerOptions(), OutputOptions()}) {
      rows->insert(rows->end(), part.begin(), part.end());
    }
    return rows;
  }();
  return *table;
}

}  // namespace hlaunch
