// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expr` from this function unless it is OK.
#define HLAUNCH_RETURN_IF_ERROR(expr)                       \
  do {                                                      \
    if (absl::Status hlaunch_s = (expr); !hlaunch_s.ok()) { \
      return hlaunch_s;                                     \
    }                                                       \
  } while (false)

#define HLAUNCH_CONCAT_INNER_(a, b) a##b
#define HLAUNCH_CONCAT_(a, b) HLAUNCH_CONCAT_INNER_(a, b)

// HLAUNCH_ASSIGN_OR_RETURN(auto x, F()): x is F()'s value, or F()'s status is returned.
#define HLAUNCH_ASSIGN_OR_RETURN(lhs, expr) \
  HLAUNCH_ASSIGN_OR_RETURN_INNER_(HLAUNCH_CONCAT_(hlaunch_or_, __LINE__), lhs, expr)
#define HLAUNCH_ASSIGN_OR_RETURN_INNER_(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp.ok()) return tmp.status();                   \
  lhs = std::move(tmp).value()

// Aborts with the place and the condition. For broken invariants, never for input from outside.
#define HLAUNCH_CHECK(condition)                                                           \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "hlaunch: bug at %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)
