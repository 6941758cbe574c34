// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/tell_answer.h"

#include <cstdio>

#include "launcher/text/exit_codes.h"
#include "proto/base/log.h"
#include "proto/base/terminal_text.h"

namespace hlaunch {

int FailToAsk(const absl::Status& status, int code) {
  LogError(status.message());
  return code;
}

int PrintAnswer(const std::string& text) {
  std::fputs(TerminalLines(text).c_str(), stdout);
  return FlushStdout();
}

}  // namespace hlaunch
