// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// `hlaunch hold --stdin`: reads one StartMessage from stdin and becomes the holder of that job, as
// --detach does. HLAUNCH_DETACHED in the message's environment names the job's folder, which is
// there and empty. hlaunchd starts it as the job's user. Returns the exit code, of the job once it
// has started; why it could not be started is said on stderr. Call while there is one thread.
int RunHold(int argc, char** argv);

}  // namespace hlaunch
