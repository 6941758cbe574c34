// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/words/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/words/printable.h"
#include "nlohmann/json.hpp"

namespace hlaunch {

std::string TextTable(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths(rows[0].size());
  for (std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = PrintableLine(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppendFormat(&text, "%-*s  ", static_cast<int>(widths[i]), row[i]);
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  return text;
}

std::string JsonText(const nlohmann::ordered_json& json) {
  return absl::StrCat(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
                      "\n");
}

}  // namespace hlaunch
