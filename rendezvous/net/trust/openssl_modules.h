// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Makes OpenSSL ignore the machine's openssl.cnf in a static program, since that file may name
// modules, such as a FIPS provider, which are libraries. Has no effect on other programs. Call it
// before anything else that uses OpenSSL, and before other threads start.
void DoWithoutOpenSslModules();

}  // namespace hlaunch
