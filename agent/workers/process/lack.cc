// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/process/lack.h"

#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/thread.h"

namespace hlaunch {

std::string NoDescriptorWords(int error) {
  return absl::StrCat(std::strerror(error),
                      error == EMFILE ? "; raise the limit (ulimit -n 1024, a container's --ulimit "
                                        "nofile=1024, LimitNOFILE= of the unit)"
                                      : "");
}

std::string LackWords(const std::exception_ptr& exception) {
  try {
    if (exception != nullptr) std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    return "out of memory; raise the limit (ulimit -v, the container's limit of memory)";
  } catch (const std::system_error& error) {
    const int code = error.code().value();
    const bool of_system = error.code().category() == std::system_category() ||
                           error.code().category() == std::generic_category() ||
                           absl::string_view(error.code().category().name()) == "asio.system";
    if (of_system && (code == EMFILE || code == ENFILE)) {
      return absl::StrCat("out of descriptors: ", NoDescriptorWords(code));
    }
    if (of_system && (code == EAGAIN || code == EPERM)) {
      return absl::StrCat("cannot start a thread: ", NoThreadWords(code));
    }
    return absl::StrCat("cannot go on: ", error.what());
  } catch (const std::exception& error) {
    return absl::StrCat("cannot go on: ", error.what());
  } catch (...) {
  }
  return "cannot go on: a bug in hlaunch";
}

void SayWhatIsLacking() {
  std::set_terminate([] {
    LogError(LackWords(std::current_exception()));
    std::abort();
  });
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace hlaunch
