// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/membership/token_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "launcher/text/printable.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

void WipeFromArguments(int argc, char** argv, absl::string_view secret) {
  if (secret.empty()) return;
  for (int i = 1; i < argc; ++i) {
    const size_t at = absl::string_view(argv[i]).find(secret);
    if (at != absl::string_view::npos) std::fill_n(argv[i] + at, secret.size(), 'x');
  }
}

absl::StatusOr<std::string> ReadTokenOf(const std::string& file) {
  const std::string what =
      file == "-" ? "stdin" : absl::StrCat("--token-file ", PrintableLine(file));
  const UniqueFd opened(file == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                    : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  size_t length = 0;
  ssize_t got = opened.valid() ? 1 : -1;
  // A person at a terminal ends the line, not the file.
  while (got > 0 && length < text.size() &&
         std::find(text.begin(), text.begin() + length, '\n') == text.begin() + length) {
    got = ::read(opened.get(), &text[length], text.size() - length);
    if (got < 0 && errno == EINTR)
      got = 1;
    else if (got > 0)
      length += static_cast<size_t>(got);
  }
  if (got < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " cannot be read: ", std::strerror(errno)));
  }
  const absl::string_view word = absl::StripAsciiWhitespace({text.data(), length});
  if (word.empty() || length == text.size() ||
      !std::all_of(word.begin(), word.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(absl::StrCat(what, " holds no join token"));
  }
  return std::string(word);
}

}  // namespace hlaunch
