// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Has OpenSSL do without the machine's openssl.cnf in a static program: that may name modules, such
// as a FIPS provider, which are libraries. Of no effect on others. Call before anything else that
// uses OpenSSL, and before other threads start.
void DoWithoutOpenSslModules();

}  // namespace hlaunch
