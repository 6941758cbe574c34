/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The hlaunch authors */

/* A worker of recovery_speed.py: stamp_worker SOCKET

   Its first act is to read the host's monotonic clock. It sends "TIME WORLD_SIZE GROUP_RANK", the
   time in nanoseconds, to the Unix socket SOCKET, and lives until that connection is closed or a
   signal ends it. Its own end closes the connection, so who listens there knows at once. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char* told(const char* name) {
  const char* value = getenv(name);
  return value ? value : "-1";
}

int main(int argc, char** argv) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (argc != 2) return 2;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, argv[1], sizeof address.sun_path - 1);
  const int bench = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(bench, (struct sockaddr*)&address, sizeof address) != 0) return 1;
  dprintf(bench, "%lld %s %s\n", now.tv_sec * 1000000000LL + now.tv_nsec, told("WORLD_SIZE"),
          told("GROUP_RANK"));
  char nothing;
  while (read(bench, &nothing, 1) > 0) continue;
  return 0;
}
