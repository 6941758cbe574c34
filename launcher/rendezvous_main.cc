// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// `hlaunch-rendezvous`: the rendezvous of many jobs as a service.

#include "launcher/grpc/serve_jobs.h"

int main(int argc, char** argv) { return hlaunch::ServeJobs(argc, argv, nullptr); }
