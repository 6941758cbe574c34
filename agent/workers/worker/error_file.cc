// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "proto/base/unique_fd.h"
#include "proto/base/utf8_prefix.h"
#include "rendezvous/round/cause/traceback.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kMore = "…";

// Cuts the end off, between whole UTF-8 characters.
std::string Shorten(std::string text) {
  if (text.size() <= kMaxTextBytes) return text;
  return absl::StrCat(Utf8Prefix(text, kMaxTextBytes - kMore.size()), kMore);
}

// Returns the member called `name`; nullptr if there is none.
const nlohmann::json* Member(const nlohmann::json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

nlohmann::json Parse(absl::string_view json) {
  return nlohmann::json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
}

// Parses a file whose end is cut off within a string. Leaves out an escape sequence or a character
// that was cut in two.
nlohmann::json ParseCut(absl::string_view json) {
  if (json.empty() || json.front() != '{') return nullptr;
  if (const size_t escape = json.rfind('\\'); escape != json.npos && escape + 12 > json.size()) {
    json = json.substr(0, escape);
    while (absl::ConsumeSuffix(&json, "\\")) {
    }
  }
  while (!json.empty() && (json.back() & '\x80') != 0) json.remove_suffix(1);
  for (const absl::string_view end : {"\"}}}", "\"}}", "\"}"}) {
    nlohmann::json parsed = Parse(absl::StrCat(json, end));
    if (!parsed.is_discarded()) return parsed;
  }
  return nullptr;
}

}  // namespace

ErrorFile ParseErrorFile(absl::string_view json) {
  auto parsed = Parse(json);
  if (parsed.is_discarded()) parsed = ParseCut(json);
  const nlohmann::json* message = Member(&parsed, "message");
  if (message == nullptr) return {};
  if (message->is_string()) return {Shorten(message->get<std::string>()), ""};
  const nlohmann::json* inner = Member(message, "message");
  if (inner == nullptr || !inner->is_string()) return {};
  const nlohmann::json* callstack = Member(Member(message, "extraInfo"), "py_callstack");
  return {Shorten(inner->get<std::string>()),
          callstack != nullptr && callstack->is_string()
              ? LastLines(callstack->get<std::string>(), kMaxTracebackBytes)
              : ""};
}

std::string ReadErrorFile(const std::string& path, size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat st = {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return "";
  std::string content(limit, '\0');
  const ssize_t n = ::read(fd.get(), content.data(), limit);
  content.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return content;
}

}  // namespace hlaunch
