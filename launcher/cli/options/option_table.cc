// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cli/options/option_table.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/cli/values/option_values.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

const std::vector<OptionRow>& OptionTable() {
  static const std::vector<OptionRow>* const table = [] {
    auto* rows = new std::vector<OptionRow>;
    for (const auto& part :
         {NodeOptions(), RendezvousOptions(), StoreOptions(), HostOptions(), ClusterOptions(),
          WorkerOptions(), DeviceOptions(), BindingOptions(), OutputOptions()}) {
      rows->insert(rows->end(), part.begin(), part.end());
    }
    return rows;
  }();
  return *table;
}

absl::Status SetFile(absl::string_view text, std::string* file) {
  if (text.empty()) return absl::InvalidArgumentError("the name of the file is missing");
  *file = std::string(text);
  return absl::OkStatus();
}

absl::Status SetDuration(absl::string_view text, double min_seconds, Duration* out) {
  HLAUNCH_ASSIGN_OR_RETURN(*out, ParseTimeout(text, min_seconds));
  return absl::OkStatus();
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
