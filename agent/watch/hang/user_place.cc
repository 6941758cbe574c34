// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/user_place.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kLibraries[] = {"site-packages/", "dist-packages/", "/lib/python3",
                                            "/python/hlaunch/", "<frozen "};

bool IsLibrarys(const std::string& frame) {
  return std::any_of(std::begin(kLibraries), std::end(kLibraries),
                     [&](absl::string_view word) { return absl::StrContains(frame, word); });
}

// "load (/home/me/loader.py:88)", "f (<string>:3)".
bool IsOwnPython(const std::string& frame) {
  return (absl::StrContains(frame, ".py:") || absl::StrContains(frame, " (<")) &&
         !IsLibrarys(frame);
}

std::string FileName(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1));
}

// Removes the directory from "load (/home/me/loader.py:88)"; brings gdb's "open (file=0x1) at
// ../io/open.c:41" and "open () from /lib/libc.so.6" into the same form.
std::string Short(const std::string& frame) {
  for (const absl::string_view word : {") at ", ") from "}) {
    const size_t place = frame.rfind(word.data());
    if (place == frame.npos) continue;
    return absl::StrCat(frame.substr(0, frame.find(" (")), " (",
                        FileName(frame.substr(place + word.size())), ")");
  }
  const size_t open = frame.rfind(" (");
  const size_t slash = frame.rfind('/');
  if (open == frame.npos || slash == frame.npos || slash < open) return frame;
  return absl::StrCat(frame.substr(0, open + 2), frame.substr(slash + 1));
}

}  // namespace

std::string UserPlace(const StackSummary& stack) {
  if (stack.frames.empty()) return "";
  auto own = std::find_if(stack.frames.begin(), stack.frames.end(), IsOwnPython);
  if (own == stack.frames.end()) {
    own = std::find_if_not(stack.frames.begin(), stack.frames.end(), IsLibrarys);
  }
  return Short(own != stack.frames.end() ? *own : stack.frames.front());
}

}  // namespace hlaunch
