// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nlohmann/json.hpp"
#include "proto/base/unique_fd.h"
#include "rendezvous/round/first_cause.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxMessageBytes = 512;

// One line of at most kMaxMessageBytes.
std::string Shorten(std::string text) {
  text = text.substr(0, text.find('\n'));
  if (text.size() > kMaxMessageBytes) text = text.substr(0, kMaxMessageBytes) + "…";
  return text;
}

// The member of that name; nullptr if there is none.
const nlohmann::json* Member(const nlohmann::json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

}  // namespace

ErrorFile ParseErrorFile(absl::string_view json) {
  const auto parsed = nlohmann::json::parse(json.begin(), json.end(), nullptr,
                                            /*allow_exceptions=*/false);
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
