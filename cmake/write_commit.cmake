# Writes OUTPUT, a source with the commit that SOURCE is at: of its git, or of the archive that it is
# from. Run at every build; OUTPUT is touched only if its text is another one, so that a build after
# a commit compiles this one file.
#
#   cmake -DSOURCE=DIR -DOUTPUT=FILE -P write_commit.cmake

function(git_says variable)
  execute_process(COMMAND git -C ${SOURCE} ${ARGN}
    OUTPUT_VARIABLE text RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    set(text "")
  endif()
  set(${variable} "${text}" PARENT_SCOPE)
endfunction()

file(REAL_PATH ${SOURCE} SOURCE)
file(READ ${SOURCE}/cmake/archive_commit.txt commit)
string(STRIP "${commit}" commit)
git_says(top rev-parse --show-toplevel)
if(commit MATCHES "Format")  # No archive.
  set(commit "")
  if(top STREQUAL SOURCE)  # Not the repository of somebody else around it.
    git_says(commit rev-parse --short=12 HEAD)
    git_says(changed status --porcelain --untracked-files=no)
    if(changed)
      string(APPEND commit " with changes")
    endif()
  endif()
endif()
if(commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[// Written by cmake/write_commit.cmake.

#include "launcher/text/version.h"

namespace hlaunch {

const char kCommit[] = "@commit@";

}  // namespace hlaunch
]] @ONLY)
