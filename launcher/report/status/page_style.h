// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// The style of a status page, and the script that keeps an open page up to date. The page's
// Content-Security-Policy allows only these two, by their hashes.
extern const char kPageStyle[];
extern const char kPageScript[];
extern const char kPageStyleHash[];
extern const char kPageScriptHash[];

}  // namespace hlaunch
