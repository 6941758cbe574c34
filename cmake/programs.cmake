# How the programs are linked: fully static where this machine has the archives, else with shared
# libraries.
#
# A static program needs nothing of the machine that it runs on but a kernel, and starts sooner: an
# agent with shared libraries takes 40 ms to load 57 of them. It is position independent all the
# same (-static-pie), but for `hlaunch`.

include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)

# The archives, as the packages' pkg-config files name them for a static link. Abseil's are all there are
# beside the first one, since there must be one Abseil. libudev has none; see agent/machine/binding/no_udev.cc.
pkg_check_modules(inside QUIET re2 openssl hwloc)
set(archive_names ${inside_STATIC_LIBRARIES} ${grpcpp_STATIC_LIBRARIES} absl_base hwloc ssl crypto)
if(HLAUNCH_GRPC)
  list(APPEND archive_names protobuf z)
endif()
list(REMOVE_DUPLICATES archive_names)
# Of glibc and the compiler, which know where theirs are.
set(system_archives atomic dl m pthread rt)
list(REMOVE_ITEM archive_names udev ${system_archives})
foreach(name ${archive_names})
  find_library(HLAUNCH_ARCHIVE_${name} lib${name}.a)
  mark_as_advanced(HLAUNCH_ARCHIVE_${name})
  if(HLAUNCH_ARCHIVE_${name})
    list(APPEND hlaunch_archives ${HLAUNCH_ARCHIVE_${name}})
  else()
    list(APPEND missing_archives lib${name}.a)
  endif()
endforeach()
get_filename_component(folder "${HLAUNCH_ARCHIVE_absl_base}" DIRECTORY)
file(GLOB abseil ${folder}/libabsl_*.a)
list(APPEND hlaunch_archives ${abseil})
list(REMOVE_DUPLICATES hlaunch_archives)
if(atomic IN_LIST grpcpp_STATIC_LIBRARIES)
  list(APPEND hlaunch_archives -latomic)
endif()

set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
check_cxx_source_compiles("#include <thread>\nint main() { std::thread([] {}).join(); }" HLAUNCH_STATIC_PIE)
# Relocations of a few bits, which the start of glibc 2.36 and newer understands; else they are 24 bytes each,
# and a position independent program has tens of thousands. GNU ld warns of what it does not know.
set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie -Wl,--fatal-warnings,-z,pack-relative-relocs)
check_cxx_source_compiles("#include <features.h>\n#if !__GLIBC_PREREQ(2, 36)\n#error\n#endif\nint main() {}"
  HLAUNCH_PACKED_RELOCATIONS)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
# GNU ld warns of getaddrinfo and dlopen in static programs; see rendezvous/net/socket/find_host.h.
check_linker_flag(CXX -Wl,--no-warnings HLAUNCH_QUIET_LINKER)
if(NOT HLAUNCH_STATIC_PIE)
  list(APPEND missing_archives "those of glibc and the compiler")
endif()
if(HLAUNCH_SANITIZE)
  set(missing_archives "sanitizers, which need shared libraries")
endif()
list(JOIN missing_archives ", " missing_archives)
set(can_be_static ON)
if(missing_archives)
  set(can_be_static OFF)
endif()
option(HLAUNCH_STATIC "Link the programs fully static" ${can_be_static})
option(HLAUNCH_DEBUG_FILES "Strip the programs; their symbols are in .debug/ beside them" OFF)
if(HLAUNCH_STATIC AND missing_archives)
  message(FATAL_ERROR "HLAUNCH_STATIC cannot be had: ${missing_archives}")
elseif(NOT HLAUNCH_STATIC)
  message(STATUS "The programs take shared libraries; for static ones: ${missing_archives}")
endif()

list(JOIN hlaunch_archives "\n" lines)
file(WRITE ${CMAKE_BINARY_DIR}/archives.txt "${lines}\n")  # For deploy/sbom.

# hlaunch_all_that_links(variable target …): the archives of ours that these targets link, and they themselves.
function(hlaunch_all_that_links variable)
  set(found)
  set(left ${ARGN})
  while(left)
    list(POP_FRONT left target)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.+)>$" "\\1" target "${target}")
    if(NOT target MATCHES "^hlaunch_" OR target IN_LIST seen)
      continue()
    endif()
    if(NOT TARGET ${target})
      message(FATAL_ERROR "${target} has to be there before what links it")
    endif()
    list(APPEND seen ${target})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND found ${target})
    endif()
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND left ${links})
    endif()
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# hlaunch_program(name source [LOADS] ROOMS target …): a program in build/bin that is made of rooms. A
# static one names its rooms and all archives in one group, from which the linker takes what is used; the
# packages' CMake targets would add shared libraries. LOADS: it loads libraries of the machine, so it
# needs glibc's shared ones even then, and nothing else. FIXED: it hears nobody who proves nothing, so it may
# lie at fixed addresses, and writes none of them into its tables when it starts.
function(hlaunch_program name source)
  cmake_parse_arguments(ARG "LOADS;FIXED" "" "ROOMS" ${ARGN})
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  target_link_libraries(${name} PRIVATE hlaunch_options hlaunch_warnings)
  if(NOT HLAUNCH_STATIC)
    target_link_libraries(${name} PRIVATE ${ARG_ROOMS})
    return()
  endif()
  hlaunch_all_that_links(ours ${ARG_ROOMS})
  add_dependencies(${name} ${ours})
  list(TRANSFORM ours REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${ours})
  set(how -static-pie $<$<BOOL:${HLAUNCH_PACKED_RELOCATIONS}>:-Wl,-z,pack-relative-relocs>)
  if(ARG_FIXED)
    # By name, the functions that run before main lie side by side, and so does what a room uses.
    set(how -static -no-pie -Wl,--sort-section=name)
  endif()
  if(ARG_LOADS)
    set(how -pie -static-libstdc++ -static-libgcc)
  else()  # An object of the program's own comes before glibc's archive.
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/launcher/no_clone3.cc)
  endif()
  target_link_options(${name} PRIVATE ${how} -Wl,-z,relro,-z,now
    $<$<BOOL:${HLAUNCH_QUIET_LINKER}>:-Wl,--no-warnings>)
  # libstdc++ comes first: Abseil's archives need functions of std::string, and the linker would take
  # them from the first room that has them, with all that this room needs, such as gRPC.
  target_link_libraries(${name} PRIVATE
    -Wl,--start-group -l:libstdc++.a ${ours} ${hlaunch_archives} -Wl,--end-group)
  if(HLAUNCH_DEBUG_FILES)
    set(file $<TARGET_FILE:${name}>)
    set(symbols $<TARGET_FILE_DIR:${name}>/.debug/$<TARGET_FILE_NAME:${name}>.debug)  # gdb looks there.
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E make_directory $<TARGET_FILE_DIR:${name}>/.debug
      COMMAND ${CMAKE_OBJCOPY} --only-keep-debug ${file} ${symbols}
      COMMAND ${CMAKE_OBJCOPY} --strip-all --add-gnu-debuglink=${symbols} ${file})
  endif()
endfunction()
