# Dependencies and the two helpers every folder uses: hlaunch_library and hlaunch_test.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
if(HLAUNCH_TESTS)
  find_package(GTest REQUIRED)
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(re2 REQUIRED re2)
if(HLAUNCH_GRPC)
  find_package(Protobuf REQUIRED)
  find_package(ZLIB REQUIRED)
  pkg_check_modules(grpcpp REQUIRED IMPORTED_TARGET grpc++)
  # NOMINMAX is for Windows, and precompiled headers need the same definitions everywhere.
  get_target_property(grpcpp_options PkgConfig::grpcpp INTERFACE_COMPILE_OPTIONS)
  if(grpcpp_options)
    list(REMOVE_ITEM grpcpp_options -DNOMINMAX)
    set_property(TARGET PkgConfig::grpcpp PROPERTY INTERFACE_COMPILE_OPTIONS ${grpcpp_options})
  endif()
  # Boost.Beast, of headers alone, speaks HTTP.
  find_path(BOOST_BEAST_INCLUDE_DIR boost/beast.hpp REQUIRED)
endif()

# Standalone Asio has no CMake package. How it is compiled is in hlaunch_options: precompiled headers need
# the same definitions everywhere. The two coroutine defines are for clang 14 and 16.
find_path(ASIO_INCLUDE_DIR asio.hpp REQUIRED)
add_library(hlaunch_asio INTERFACE)
target_include_directories(hlaunch_asio SYSTEM INTERFACE ${ASIO_INCLUDE_DIR})
target_link_libraries(hlaunch_asio INTERFACE Threads::Threads)
set(asio_definitions ASIO_STANDALONE ASIO_NO_DEPRECATED)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND asio_definitions ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE)
endif()

# RE2's archive, where it needs nothing else: it is one library less to load. Its -pthread is left out,
# which clang's precompiled headers would not bear in some targets alone.
add_library(hlaunch_re2 INTERFACE)
find_library(HLAUNCH_RE2_ARCHIVE libre2.a)
if(HLAUNCH_RE2_ARCHIVE AND NOT re2_STATIC_LIBRARIES MATCHES "absl" AND NOT HLAUNCH_SANITIZE)
  target_link_libraries(hlaunch_re2 INTERFACE ${HLAUNCH_RE2_ARCHIVE} Threads::Threads)
else()
  target_link_libraries(hlaunch_re2 INTERFACE ${re2_LINK_LIBRARIES} Threads::Threads)
endif()

include(programs)

add_library(hlaunch_warnings INTERFACE)
target_compile_options(hlaunch_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety> $<$<BOOL:${HLAUNCH_WERROR}>:-Werror>)
if(HLAUNCH_UNITY)
  # GCC takes a file that is compiled with others for a header, where a type may not hold one of a
  # nameless namespace.
  target_compile_options(hlaunch_warnings INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()

add_library(hlaunch_sanitize INTERFACE)
if(HLAUNCH_SANITIZE)
  # Whether an object has the type it is said to have is found out by means of a pipe, so it is
  # wrong where a test has no descriptors left: no vptr.
  target_compile_options(hlaunch_sanitize INTERFACE
    -fsanitize=${HLAUNCH_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1 $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  target_compile_definitions(hlaunch_sanitize INTERFACE HLAUNCH_SANITIZED)
  # A program that can be anywhere has a million places to correct when it starts, of a sanitizer's
  # tables alone: a third of the time that a small test takes.
  target_link_options(hlaunch_sanitize INTERFACE -fsanitize=${HLAUNCH_SANITIZE}
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()
add_library(hlaunch_options INTERFACE)
target_include_directories(hlaunch_options INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(hlaunch_options INTERFACE hlaunch_sanitize)
target_compile_definitions(hlaunch_options INTERFACE ${asio_definitions})
# A program that needs one function takes the object that has it, which is all of a room where its
# files are compiled as one. The linker leaves out what the program does not use.
if(NOT HLAUNCH_SANITIZE)
  target_compile_options(hlaunch_options INTERFACE -ffunction-sections -fdata-sections)
  target_link_options(hlaunch_options INTERFACE -Wl,--gc-sections)
endif()
# GCC looks for memory to use again only beyond 1 GB: a tenth less time, and a tenth more memory.
target_compile_options(hlaunch_options INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
# All rooms are position independent, as those of libhlcomm have to be, so that they share precompiled
# headers; calls within a room are inlined all the same.
target_compile_options(hlaunch_options INTERFACE -fno-semantic-interposition)

# hlaunch_library(name SOURCES a.cc … DEPS target … PRIVATE_DEPS target … [APART a.cc …]). Where
# HLAUNCH_UNITY is on, twelve files at once are one to the compiler. Those APART are not among them:
# a name of their own, in a nameless namespace, is a neighbour's as well, or a test wants their object.
function(hlaunch_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS;APART" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(HLAUNCH_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
  endif()
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  set_property(GLOBAL APPEND PROPERTY hlaunch_libraries ${name})
  target_link_libraries(${name} PUBLIC hlaunch_options ${ARG_DEPS}
    PRIVATE hlaunch_warnings ${ARG_PRIVATE_DEPS})
endfunction()

# The rooms where a job spends its time: collectives, the store, rounds of thousands of nodes, output.
# The others are compiled with -O1, which takes a quarter less time.
set(hlaunch_hot_rooms "^(comm|proto/base|agent/output|rendezvous/(net/(guarded|port)|round/(table|values)|store))($|/)")

# hlaunch_room(folder SOURCES a.cc … USES room … [DEPS target …] [PRIVATE_DEPS target …]
# [APART a.cc …]): the library of a folder of the house, hlaunch_ and its path. USES names the rooms
# whose headers it may include; style.layers holds it to them.
function(hlaunch_room folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;DEPS;PRIVATE_DEPS;APART" ${ARGN})
  list(TRANSFORM ARG_USES REPLACE "/" "_")
  list(TRANSFORM ARG_USES PREPEND hlaunch_)
  string(REPLACE "/" "_" name hlaunch_${folder})
  hlaunch_library(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_USES} ${ARG_DEPS}
    PRIVATE_DEPS ${ARG_PRIVATE_DEPS} APART ${ARG_APART})
  if(HLAUNCH_SANITIZE)
    if(NOT folder MATCHES "^(proto|rendezvous|comm)")  # Costs more to optimise than it saves the tests.
      target_compile_options(${name} PRIVATE -O0)
    endif()
  elseif(folder MATCHES "${hlaunch_hot_rooms}")
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  set_property(GLOBAL APPEND PROPERTY hlaunch_rooms ${name})
endfunction()

# hlaunch_wing(folder [USES wing …]): the rooms below that folder, and the wings of its floor whose rooms
# they may use. It builds nothing; style.layers holds the rooms to it.
function(hlaunch_wing folder)
endfunction()

# hlaunch_test(room/x_test [ALONE] DEPS target … [LABELS label]): a file of GoogleTest tests, one
# CTest case per test, but see hlaunch_add_shards. The files of a room that have the same label are
# one program, room_test or room_integration_test; so are those that start no thread,
# room_one_thread_test, which ThreadSanitizer leaves out. ALONE: no other test runs beside those of
# the file.
function(hlaunch_test source)
  cmake_parse_arguments(ARG "ALONE" "LABELS" "DEPS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  get_filename_component(room ${path} DIRECTORY)
  string(REPLACE "/" "_" program ${room})
  if(path IN_LIST hlaunch_one_thread)
    if(HLAUNCH_SANITIZE STREQUAL thread)
      return()
    endif()
    string(APPEND program _one_thread)
  endif()
  if(NOT ARG_LABELS STREQUAL unit)
    string(APPEND program _${ARG_LABELS})
  endif()
  if(ARG_ALONE)
    string(APPEND program _alone)
  endif()
  string(APPEND program _test)
  if(NOT TARGET ${program})
    add_executable(${program})
    target_link_libraries(${program} PRIVATE hlaunch_options hlaunch_warnings)
    # After all of DEPS: the linker looks for what it lacks in what follows, and with ours behind it,
    # it would take what it needs of std::string from files of ours, with all that these need.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL
      target_link_libraries ${program} PRIVATE GTest::gmock GTest::gtest_main)")
    target_compile_options(${program} PRIVATE -O0)  # half of the time to compile
    set_target_properties(${program} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
    if(HLAUNCH_UNITY)
      set_target_properties(${program} PROPERTIES UNITY_BUILD ON)
    endif()
    set_property(GLOBAL APPEND PROPERTY hlaunch_test_programs ${program})
    if(path IN_LIST hlaunch_one_thread)
      set_property(GLOBAL APPEND PROPERTY hlaunch_one_thread_programs ${program})
    endif()
    if(HLAUNCH_SANITIZE)
      cmake_language(EVAL CODE "cmake_language(DEFER CALL
        hlaunch_add_shards ${program} \"${ARG_LABELS}\" ${ARG_ALONE})")
    else()
      gtest_discover_tests(${program} TEST_PREFIX "${program}." DISCOVERY_MODE PRE_TEST
        PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 1800 RUN_SERIAL ${ARG_ALONE})
    endif()
  endif()
  target_sources(${program} PRIVATE ${source}.cc)
  target_link_libraries(${program} PRIVATE ${ARG_DEPS})
endfunction()

# hlaunch_add_shards(program labels alone): as many CTest cases as the program has files, and four at
# least, each with its share of the tests. With a sanitizer, a process for each test costs more than
# most tests do. tests/summary.py reads what each test came to from gtest/case.xml.
function(hlaunch_add_shards program labels alone)
  get_target_property(files ${program} SOURCES)
  list(LENGTH files shards)
  if(alone)
    set(shards 1)
  elseif(shards LESS 4)
    set(shards 4)
  endif()
  math(EXPR last "${shards} - 1")
  foreach(shard RANGE ${last})
    set(case ${program}.${shard})
    add_test(NAME ${case} COMMAND ${program})
    set_tests_properties(${case} PROPERTIES LABELS "${labels}" TIMEOUT 1800 RUN_SERIAL ${alone}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard};GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/gtest/${case}.xml")
  endforeach()
endfunction()

# Precompiled headers: what most files include is parsed once per kind of target, not once per file.
# None is ours, so nothing is compiled again because of them. A file that forgets an include compiles
# all the same: `tests/run --full` has a build without them, and style.includes looks for it in the text.
# Not nlohmann/json.hpp: its literals make each file instantiate the parser, also where it is precompiled.
set(hlaunch_common_headers <algorithm> <array> <atomic> <cerrno> <chrono> <cstdint> <cstdio> <cstdlib>
  <cstring> <deque> <filesystem> <fstream> <functional> <iostream> <limits> <map> <memory> <mutex>
  <optional> <set> <span> <sstream> <string> <thread> <utility> <variant> <vector>
  absl/container/flat_hash_map.h absl/container/flat_hash_set.h absl/functional/any_invocable.h
  absl/functional/function_ref.h absl/status/status.h absl/status/statusor.h absl/strings/ascii.h
  absl/strings/match.h absl/strings/numbers.h absl/strings/str_cat.h absl/strings/str_format.h
  absl/strings/str_join.h absl/strings/str_replace.h absl/strings/str_split.h
  absl/strings/string_view.h absl/strings/strip.h absl/synchronization/mutex.h absl/time/time.h
  absl/types/span.h asio/io_context.hpp asio/posix/stream_descriptor.hpp asio/post.hpp
  asio/steady_timer.hpp)
set(hlaunch_grpc_headers google/protobuf/message.h grpcpp/grpcpp.h)
set(hlaunch_test_headers gmock/gmock.h gtest/gtest.h)

# hlaunch_precompile(target …): lets targets use the precompiled headers of their kind. Compilers
# take them only where the options of both are the same.
function(hlaunch_precompile)
  set(keep "$<IF:$<CXX_COMPILER_ID:GNU>,-fpch-preprocess,SHELL:-Xclang -fno-pch-timestamp>")
  foreach(target ${ARGN})
    get_target_property(links ${target} LINK_LIBRARIES)
    get_target_property(pic ${target} POSITION_INDEPENDENT_CODE)
    get_target_property(options ${target} COMPILE_OPTIONS)
    set(kind hlaunch_precompiled)
    string(REGEX MATCH "-O[0-9s]" level "${options}")
    string(REPLACE "-" "_" level "${level}")
    string(APPEND kind "${level}")
    set(needs absl::strings hlaunch_asio)
    set(headers ${hlaunch_common_headers})
    if("GTest::gmock" IN_LIST links)
      string(APPEND kind _test)
      list(APPEND needs GTest::gmock)
      list(APPEND headers ${hlaunch_test_headers})
    endif()
    if(links MATCHES "hlaunch_messages|hlaunch_[a-z]*_grpc|grpcpp")
      string(APPEND kind _grpc)
      list(APPEND needs PkgConfig::grpcpp protobuf::libprotobuf)
      list(APPEND headers ${hlaunch_grpc_headers})
    endif()
    if(NOT TARGET ${kind})
      set(source ${CMAKE_BINARY_DIR}/${kind}.cc)
      file(CONFIGURE OUTPUT ${source} CONTENT "")
      add_library(${kind} OBJECT ${source})
      target_link_libraries(${kind} PRIVATE hlaunch_options hlaunch_warnings ${needs})
      target_compile_options(${kind} PRIVATE "${keep}")
      if(options)
        target_compile_options(${kind} PRIVATE ${options})
      endif()
      if(pic)
        set_target_properties(${kind} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      endif()
      list(TRANSFORM headers REPLACE "^([^<].*)$" "<\\1>")
      target_precompile_headers(${kind} PRIVATE ${headers})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${kind})
    target_compile_options(${target} PRIVATE "${keep}")
  endforeach()
endfunction()
