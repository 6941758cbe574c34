// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/text_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "launcher/text/printable.h"
#include "nlohmann/json.hpp"

namespace hlaunch {

size_t ColumnsOf(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & '\xc0') != '\x80'; }));
}

std::string CutToColumns(absl::string_view text, size_t columns, absl::string_view mark) {
  if (ColumnsOf(text) <= columns) return std::string(text);
  size_t bytes = 0;
  for (size_t used = 0; bytes < text.size(); ++bytes) {
    if ((text[bytes] & '\xc0') != '\x80' && ++used >= std::max<size_t>(columns, 1)) break;
  }
  return absl::StrCat(text.substr(0, bytes), mark);
}

std::string TextTable(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths(rows[0].size());
  for (std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = PrintableLine(row[i]);
      widths[i] = std::max(widths[i], ColumnsOf(row[i]));
    }
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppend(&text, row[i], std::string(widths[i] + 2 - ColumnsOf(row[i]), ' '));
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
