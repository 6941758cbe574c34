// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// How hlaunch-pmix for old systems starts. Only deploy/build_portable links this. What a program of
// today starts with asks for a function of glibc 2.34, which runs the program's constructors; the
// older function of the same name leaves that to the program.

#if defined(__aarch64__)
#define HLAUNCH_FIRST_GLIBC "GLIBC_2.17"
#else
#define HLAUNCH_FIRST_GLIBC "GLIBC_2.2.5"
#endif

extern "C" {

using Main = int (*)(int, char**, char**);
using Constructor = void (*)(int, char**, char**);

// The linker's names of where the constructors begin and end.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern const Constructor __init_array_start[] __attribute__((visibility("hidden")));
extern const Constructor __init_array_end[] __attribute__((visibility("hidden")));

int OldStartMain(Main main, int argc, char** argv, Constructor construct, void (*at_end)(),
                 void (*of_loader)(), void* stack_end);
__asm__(".symver OldStartMain, __libc_start_main@" HLAUNCH_FIRST_GLIBC);

static void Construct(int argc, char** argv, char** environment) {
  for (const Constructor* one = __init_array_start; one != __init_array_end; ++one) {
    (*one)(argc, argv, environment);
  }
}

// Takes the place of glibc's in this program alone.
int __libc_start_main(Main main, int argc, char** argv, Constructor /*construct*/, void (*at_end)(),
                      void (*of_loader)(), void* stack_end) {
  return OldStartMain(main, argc, argv, Construct, at_end, of_loader, stack_end);
}
// NOLINTEND(bugprone-reserved-identifier)

}  // extern "C"
