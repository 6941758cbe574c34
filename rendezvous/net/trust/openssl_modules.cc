// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/openssl_modules.h"

#include <openssl/crypto.h>

#include "proto/base/static_program.h"

namespace hlaunch {

void DoWithoutOpenSslModules() {
  if (IsStaticProgram()) ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

}  // namespace hlaunch
