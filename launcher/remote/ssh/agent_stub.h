// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// `hlaunch agent --stdin`, which `hlaunch --hosts` starts on each host. Reads one StartMessage from
// stdin, takes over the state in it (limits, umask, directory) and reports on stdout its version,
// its pid and whether it reaches the rendezvous. Then it runs `hlaunch` as its child with the
// options of the message, as if a person had started the job on this host. The child writes to the
// inherited stdout and stderr.
//
// Stdin ends when ssh or the launcher at the terminal dies. That ends this host's part of the job,
// unless the job is detached. Nothing that the stub started outlives it. If the stub itself is
// killed, the child's keeper dies with it and the child's agent ends the workers.
//
// Returns the child's exit code. Call from main before any thread exists.
int RunAgentStub(int argc, char** argv);

}  // namespace hlaunch
