// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// A system call that writes no memory of ours, not even errno. Returns its result, or the negative
// errno. For a child that shares our memory and this thread's errno while we go on.
//
// The calling conventions are those of syscall(2).
inline __attribute__((always_inline)) long RawSyscall(long number, long a = 0, long b = 0,
                                                      long c = 0, long d = 0, long e = 0) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
#else
#error "add the system call of this architecture"
#endif
}

// Converts a pointer to an argument of RawSyscall.
inline __attribute__((always_inline)) long RawArgument(const void* pointer) {
  return reinterpret_cast<long>(pointer);
}

}  // namespace hlaunch
