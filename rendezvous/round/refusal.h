// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// In each line about a node that was refused, between the node and the reason.
inline constexpr char kWasRefused[] = " was refused: ";

}  // namespace hlaunch
