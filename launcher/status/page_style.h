// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// What a status page looks like, and the script that keeps one in a browser up to date; and the
// hashes by which the page's Content-Security-Policy allows these two and nothing else.
extern const char kPageStyle[];
extern const char kPageScript[];
extern const char kPageStyleHash[];
extern const char kPageScriptHash[];

}  // namespace hlaunch
