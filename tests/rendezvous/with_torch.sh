#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
#
# with_torch.sh system|torch2 TEST.py SERVER: runs the test beside it with that interpreter. torch2
# is $HLAUNCH_TORCH2_PYTHON, or what is cached for the tests. 77: it is not there.
case $1 in
  system) python=/usr/bin/python3 ;;
  *) python=${HLAUNCH_TORCH2_PYTHON:-$HOME/.cache/hlaunch/torch-newest/bin/python} ;;
esac
if [ ! -x "$python" ]; then
  echo "skipped: there is no $python"
  exit 77
fi
exec "$python" "$(dirname "$0")/$2" "$3"
