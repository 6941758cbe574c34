// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// `hlaunch` runs jobs of one node by itself, without gRPC. For all other jobs it is the keeper.

#include "launcher/launch.h"

int main(int argc, char** argv) { return hlaunch::Launch(argc, argv, nullptr); }
