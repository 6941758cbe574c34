// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <exception>
#include <string>

namespace hlaunch {

// What the system does not give, in words for the person.

// The reason and the way out if a descriptor, or what comes with one, cannot be had because of
// `error`, an errno. Pure. For a thread or a process: NoThreadWords.
std::string NoDescriptorWords(int error);

// One sentence about an exception that nobody caught. Pure.
std::string LackWords(const std::exception_ptr& exception);

// A library of ours throws if it is refused a thread, a descriptor or memory where it cannot do
// without. From this call on, such an exception says so in one sentence before it aborts this
// process. And a write beyond the limit of a file's size (ulimit -f) returns EFBIG; SIGXFSZ would
// end a job because of a line of our own. Children start with the default action, see process.h.
void SayWhatIsLacking();

}  // namespace hlaunch
