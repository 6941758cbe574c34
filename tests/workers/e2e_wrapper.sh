#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
#
# What users' wrappers do: starts something that gets away from the session, then the worker as a
# child, and waits for it.

setsid sleep 600 > /dev/null 2>&1 &
"$(dirname "$0")/e2e_worker.py" "$@" &
wait $!
