// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/plain_trouble.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

struct Sentence {
  const char* fragment;  // A part of gRPC's text.
  const char* words;
};

// The first match counts.
constexpr Sentence kSentences[] = {
    {"http1", "what answers there is not hlaunch"},
    {"andshake", "the two ends could not agree on TLS"},
    {"Socket closed", "the connection was closed"},
    {"onnection reset", "the connection was closed"},
    {"Broken pipe", "the connection was closed"},
    {"GOAWAY", "the connection was closed"},
    {"ransport closed", "the connection was closed"},
    {"tream removed", "the connection was closed"},
    {"keepalive", "nothing came back on the connection"},
    {"imeout occurred", "no answer to the connection"},
    {"eadline", "no answer in time"},
    {"failed to connect to all addresses", "no connection can be made"},
};

constexpr int kKernelErrors[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT,
                                 EACCES,       EPERM,        EHOSTDOWN};

}  // namespace

std::string PlainTrouble(absl::string_view text) {
  for (const int error : kKernelErrors) {
    const char* const words = std::strerror(error);
    if (absl::StrContains(text, words)) return words;
  }
  for (const Sentence& sentence : kSentences) {
    if (absl::StrContains(text, sentence.fragment)) return sentence.words;
  }
  return std::string(text);
}

void CallTrouble::Learn(std::string trouble, bool late) {
  if (late) {
    late_ = std::move(trouble);
  } else {
    cause_ = std::move(trouble);
    late_.clear();
  }
}

std::string CallTrouble::Words() const {
  if (late_.empty() || late_ == cause_) return cause_.empty() ? "no time left" : cause_;
  return cause_.empty() ? late_ : absl::StrCat(cause_, ", then ", late_);
}

}  // namespace hlaunch
