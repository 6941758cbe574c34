// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// `hlaunch`: runs jobs of one node by itself, without gRPC; the keeper of all others.

#include "launcher/launch.h"

int main(int argc, char** argv) { return hlaunch::Launch(argc, argv, nullptr); }
