# Removes what the last `cmake --install` of a build put into place, and the folders that are then
# empty and named after hlaunch.
#
#   cmake -DMANIFEST=build/install_manifest.txt -P uninstall.cmake

if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "nothing to uninstall: there is no ${MANIFEST}, which `cmake --install` writes")
endif()
file(STRINGS "${MANIFEST}" files)
foreach(file ${files})
  set(file "$ENV{DESTDIR}${file}")
  if(EXISTS "${file}" OR IS_SYMLINK "${file}")
    message(STATUS "Removing: ${file}")
    file(REMOVE "${file}")
  endif()
  # The folders above it up to the one with hlaunch's name; others are shared.
  string(REGEX MATCH "^(.*/(hlaunch|hlcomm)[^/]*)/" above "${file}")
  if(above)
    list(APPEND folders "${CMAKE_MATCH_1}")
    get_filename_component(folder "${file}" DIRECTORY)
    while(NOT folder STREQUAL CMAKE_MATCH_1)
      list(APPEND folders "${folder}")
      get_filename_component(folder "${folder}" DIRECTORY)
    endwhile()
  endif()
endforeach()
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING)  # What is inside comes before what is around it.
foreach(folder ${folders})
  file(REMOVE_RECURSE "${folder}/__pycache__")
  file(GLOB left "${folder}/*")
  if(IS_DIRECTORY "${folder}" AND NOT left)
    file(REMOVE_RECURSE "${folder}")
  endif()
endforeach()
file(REMOVE "${MANIFEST}")
