// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/tls_progress.h"

#include <gtest/gtest.h>

#include <string>

namespace hlaunch {
namespace {

std::string Record(char type, const std::string& content) {
  return std::string{type, 3, 3, 0, static_cast<char>(content.size())} + content;
}

const std::string kHello = Record(22, std::string(100, '\x17'));
const std::string kCipherChange = Record(20, "\1");
const std::string kProtected = Record(23, std::string(100, '\x16'));

TEST(TlsProgress, IsOverWhenTheServerHasJudgedTheClientsPart) {
  TlsProgress progress;
  progress.Received(kHello);
  EXPECT_FALSE(progress.Sends());
  progress.Received(kCipherChange);
  EXPECT_FALSE(progress.Sends());
  for (const char byte : kProtected) progress.Received(std::string(1, byte));
  EXPECT_TRUE(progress.Sends());
}

TEST(TlsProgress, IsOverInTls12WithTheClientsFirstData) {
  TlsProgress progress;
  progress.Received(kHello);
  EXPECT_FALSE(progress.Sends());
  progress.Received(Record(22, "key") + kCipherChange + Record(22, "finished"));
  EXPECT_FALSE(progress.Sends());
  EXPECT_FALSE(progress.Sends());
  progress.Received(kProtected);
  EXPECT_TRUE(progress.Sends());
}

TEST(TlsProgress, IsNotOverForWhoSendsAHeadBeforeTheServersPart) {
  TlsProgress progress;
  progress.Received(kHello + kProtected.substr(0, 20));
  EXPECT_FALSE(progress.Sends());
  TlsProgress retried;  // The server asks for another hello.
  retried.Received(kHello);
  EXPECT_FALSE(retried.Sends());
  retried.Received(kHello + kProtected.substr(0, 20));
  EXPECT_FALSE(retried.Sends());
}

}  // namespace
}  // namespace hlaunch
