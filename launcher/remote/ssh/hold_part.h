// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// `hlaunch hold --stdin`: reads one StartMessage from stdin and becomes the holder of that job, as
// --detach does. hlaunchd starts it as the job's user. HLAUNCH_DETACHED in the message's
// environment names the job's folder, which exists and is empty. Returns the job's exit code once
// the job has started; if it could not be started, the reason goes to stderr. Call while the
// process has one thread.
int RunHold(int argc, char** argv);

}  // namespace hlaunch
