// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/option_table.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hlaunch {

const std::vector<OptionRow>& OptionTable() {
  static const std::vector<OptionRow>* const table = [] {
    auto* rows = new std::vector<OptionRow>;
    for (const auto& part : {RendezvousOptions(), HostOptions(), ClusterOptions(), WorkerOptions(),
                             DeviceOptions(), BindingOptions(), OutputOptions()}) {
      rows->insert(rows->end(), part.begin(), part.end());
    }
    return rows;
  }();
  return *table;
}

std::string Underscored(absl::string_view name) {
  return absl::StrCat("--", absl::StrReplaceAll(name.substr(2), {{"-", "_"}}));
}

const OptionRow* FindOption(absl::string_view word) {
  const std::string name = absl::StrReplaceAll(word.substr(0, word.find('=')), {{"_", "-"}});
  const auto& table = OptionTable();
  const auto found = std::find_if(table.begin(), table.end(), [&name](const OptionRow& row) {
    return name == row.name || (name.size() == 2 && name == row.short_name);
  });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace hlaunch
