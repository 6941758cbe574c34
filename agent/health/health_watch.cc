// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/health_watch.h"

#include "absl/strings/str_cat.h"

namespace hlaunch {

HealthWatch::HealthWatch(asio::io_context& loop, const std::vector<std::string>& argv,
                         const std::function<void(const CheckResult&)>& tell)
    : process_(loop, argv,
               {[tell](absl::string_view line) {
                  if (const auto change = FromLine(line)) tell(*change);
                },
                [tell](const LineProcessEnd& end) {
                  tell({"health",
                        {},
                        "",
                        CheckState::kWarn,
                        absl::StrCat("nobody looks after it until the next round: ", end.why),
                        ""});
                }}) {}

}  // namespace hlaunch
