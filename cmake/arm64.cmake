# A toolchain file: programs for arm64, linked on another machine from Debian's archives in
# HLAUNCH_ARM64_ROOT, which deploy/build_arm64 makes. Generators of code are this machine's own; what
# the build runs of its own programs, qemu runs.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_OBJCOPY aarch64-linux-gnu-objcopy)
set(CMAKE_STRIP aarch64-linux-gnu-strip)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${HLAUNCH_ARM64_ROOT})

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HLAUNCH_ARM64_ROOT)
set(CMAKE_SYSROOT ${HLAUNCH_ARM64_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${HLAUNCH_ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${HLAUNCH_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${HLAUNCH_ARM64_ROOT}/usr/share/pkgconfig)

# What the packages' own CMake files would look for in the root.
set(Protobuf_PROTOC_EXECUTABLE /usr/bin/protoc CACHE FILEPATH "The generator of this machine")
