// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// A worker that is an MPI program. It prints its place, passes a number round the ring, and does
// what its first argument says, like mpi_worker.py. Rank 1 is the one that fails. If STAYS is set,
// a rank stays after the last barrier until it is ended.

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char* name) { return getenv(name) != NULL ? atoi(getenv(name)) : 0; }

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int fails = number("RANK") == 1 && number("TORCHELASTIC_RESTART_COUNT") == 0;
  if (strcmp(what, "exit-before-init") == 0 && number("GROUP_RANK") == number("GROUP_WORLD_SIZE") - 1 &&
      (number("RANK") == 1 || number("GROUP_WORLD_SIZE") > 1)) {
    return 0;
  }
  if (strcmp(what, "sleep-before-init") == 0 && fails) pause();
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, local = 0, from = 0, sum = 0;
  MPI_Comm node;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &local);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &from, 1, MPI_INT, (rank + size - 1) % size,
               0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  printf("MPI rank %d of %d, %d here, after %d, sum %d, on %s\n", rank, size, local, from, sum, host);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "abort") == 0 && fails) MPI_Abort(MPI_COMM_WORLD, 7);
  if (strcmp(what, "exit-before-finalize") == 0 && fails) _exit(0);
  if (strcmp(what, "kill") == 0 && fails) kill(getpid(), SIGKILL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (getenv("STAYS") != NULL) {
    printf("rank %d stays\n", rank);
    fflush(stdout);
    pause();
  }
  MPI_Finalize();
  return 0;
}
