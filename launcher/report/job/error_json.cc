// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/job/error_json.h"

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace hlaunch {

std::string ErrorJson(const Outcome& outcome) {
  using nlohmann::ordered_json;
  const WorkerFailure& first = outcome.failures.front();
  const ordered_json info = {{"py_callstack", first.traceback},
                             {"timestamp", absl::StrCat(first.wall_ms / 1000)}};
  const ordered_json message = {{"message", first.message.empty() ? outcome.reason : first.message},
                                {"extraInfo", info}};
  // Text from a worker may hold any bytes.
  return ordered_json({{"message", message}})
      .dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace hlaunch
