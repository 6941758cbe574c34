// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/error_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nlohmann/json.hpp"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxMessageBytes = 512;

// One line of at most kMaxMessageBytes.
std::string Shorten(std::string text) {
  text = text.substr(0, text.find('\n'));
  if (text.size() > kMaxMessageBytes) text = text.substr(0, kMaxMessageBytes) + "…";
  return text;
}

}  // namespace

std::string ErrorFileMessage(absl::string_view json) {
  const auto parsed = nlohmann::json::parse(json.begin(), json.end(), nullptr,
                                            /*allow_exceptions=*/false);
  if (!parsed.is_object()) return "";
  auto message = parsed.find("message");
  if (message == parsed.end()) return "";
  if (message->is_string()) return Shorten(message->get<std::string>());
  if (!message->is_object()) return "";
  auto inner = message->find("message");
  if (inner == message->end() || !inner->is_string()) return "";
  return Shorten(inner->get<std::string>());
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
