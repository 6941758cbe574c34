# Dependencies and the two helpers every folder uses: hlaunch_library and hlaunch_test.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
if(HLAUNCH_GRPC)
  find_package(Protobuf REQUIRED)
  find_package(ZLIB REQUIRED)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(grpcpp REQUIRED IMPORTED_TARGET grpc++)
endif()

# Standalone Asio has no CMake package. The two coroutine defines are for clang 14 and 16.
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(hlaunch_asio INTERFACE)
target_include_directories(hlaunch_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
target_compile_definitions(hlaunch_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_definitions(hlaunch_asio INTERFACE ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE)
endif()
target_link_libraries(hlaunch_asio INTERFACE Threads::Threads)

add_library(hlaunch_warnings INTERFACE)
target_compile_options(hlaunch_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety> $<$<BOOL:${HLAUNCH_WERROR}>:-Werror>)

add_library(hlaunch_sanitize INTERFACE)
if(HLAUNCH_SANITIZE)
  # Whether an object has the type it is said to have is found out by means of a pipe, so it is
  # wrong where a test has no descriptors left: no vptr.
  target_compile_options(hlaunch_sanitize INTERFACE
    -fsanitize=${HLAUNCH_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1 -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_compile_definitions(hlaunch_sanitize INTERFACE HLAUNCH_SANITIZED)
  target_link_options(hlaunch_sanitize INTERFACE -fsanitize=${HLAUNCH_SANITIZE})
endif()
add_library(hlaunch_options INTERFACE)
target_include_directories(hlaunch_options INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(hlaunch_options INTERFACE hlaunch_sanitize)

# hlaunch_library(name SOURCES a.cc … DEPS target … PRIVATE_DEPS target …)
function(hlaunch_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC hlaunch_options ${ARG_DEPS}
    PRIVATE hlaunch_warnings ${ARG_PRIVATE_DEPS})
endfunction()

# hlaunch_room(folder SOURCES a.cc … USES room … [DEPS target …] [PRIVATE_DEPS target …]): the library
# of a folder of the house, hlaunch_ and its path. USES names the rooms whose headers it may
# include; style.layers holds it to them.
function(hlaunch_room folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;DEPS;PRIVATE_DEPS" ${ARGN})
  list(TRANSFORM ARG_USES REPLACE "/" "_")
  list(TRANSFORM ARG_USES PREPEND hlaunch_)
  string(REPLACE "/" "_" name hlaunch_${folder})
  hlaunch_library(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_USES} ${ARG_DEPS}
    PRIVATE_DEPS ${ARG_PRIVATE_DEPS})
  if(folder MATCHES "^(proto|rendezvous|comm)")  # What libhlcomm may take.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  set_property(GLOBAL APPEND PROPERTY hlaunch_rooms ${name})
endfunction()

# hlaunch_test(room/x_test [ALONE] DEPS target … [LABELS …]): one GoogleTest program and one CTest
# case per test. ALONE: no other test runs beside it.
function(hlaunch_test source)
  cmake_parse_arguments(ARG "ALONE" "" "DEPS;LABELS" ${ARGN})
  get_filename_component(name ${source} NAME)
  add_executable(${name} ${source}.cc)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main
    hlaunch_options hlaunch_warnings)
  if(HLAUNCH_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)  # a third of the time of -O1 to compile
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 60 RUN_SERIAL ${ARG_ALONE})
endfunction()

# hlaunch_prefer_archives(program): takes Abseil and libstdc++ from archives. The packages' CMake
# targets name shared libraries only, some thirty of them, and to load those takes longer than
# everything else that `hlaunch` does to start a node. The group resolves all that our rooms need;
# the shared libraries behind it are then not needed and not linked.
function(hlaunch_prefer_archives program)
  get_target_property(location absl::status IMPORTED_LOCATION_RELEASE)
  if(NOT location)
    get_target_property(location absl::status IMPORTED_LOCATION_NONE)
  endif()
  get_filename_component(folder "${location}" DIRECTORY)
  file(GLOB archives ${folder}/libabsl_*.a)
  if(NOT archives OR HLAUNCH_SANITIZE)
    message(STATUS "${program}: shared libraries (no archives of Abseil in '${folder}')")
    return()
  endif()
  get_property(rooms GLOBAL PROPERTY hlaunch_rooms)
  list(FILTER rooms EXCLUDE REGEX "_grpc$")
  list(TRANSFORM rooms REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE ours)
  target_link_options(${program} PRIVATE -Wl,--as-needed -static-libstdc++ -static-libgcc)
  target_link_libraries(${program} PRIVATE
    -Wl,--start-group ${ours} ${archives} -Wl,--end-group)
  add_dependencies(${program} ${rooms})
endfunction()
