// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/folded_console.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/output/console.h"
#include "proto/contract/rank_list.h"

namespace hlaunch {

void FoldedConsole::SetLook(LineSource source, LineLook look) { looks_[source] = std::move(look); }

void FoldedConsole::Add(LineSource source, absl::string_view bytes, Instant now) {
  folder_.Add(source, bytes, now);
  if (folder_.due() && *folder_.due() <= now) Show();
}

std::string FoldedConsole::TakeOver(LineSource source) {
  Show();
  return folder_.TakeUnended(source);
}

void FoldedConsole::Show() {
  for (const LineFolder::Block& block : folder_.Take()) {
    const LineLook& look = looks_[{block.ranks.front(), block.fd}];
    std::string prefix = look.prefix;
    if (block.ranks.size() > 1) {
      prefix = absl::StrCat("[", RankList(block.ranks), "] ");
      if (look.colour) prefix = Coloured(prefix, block.ranks.front());
    }
    LineCutter lines(prefix, look.terminal);
    show_(block.fd, lines.Feed(block.text));
  }
}

}  // namespace hlaunch
