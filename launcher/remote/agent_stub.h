// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// `hlaunch agent --stdin`: what `hlaunch --hosts` starts on each host. Reads one StartMessage from
// stdin, puts itself into the state of the terminal's end, says on stdout who it is and whether it
// reaches the rendezvous, and runs `hlaunch` as its child with the words of the message: the job
// as if it had been started here by hand. The child's output is its own.
//
// The end of stdin, which comes when ssh or the terminal's end dies, ends the job's part here.
// Nothing that it started outlives it; if it is killed itself, the child's keeper dies with it and
// the child's agent ends the workers.
//
// Returns the exit code, that of the child. Call from main before any thread exists.
int RunAgentStub(int argc, char** argv);

}  // namespace hlaunch
