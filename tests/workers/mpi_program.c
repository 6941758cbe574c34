// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// One of several programs of an MPI job. It prints its rank, its program's number, its arguments,
// the value of ROLE and where it runs.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank = 0, size = 0, sum = 0, found = 0;
  int* number = NULL;
  char folder[4096] = "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("MPI rank %d of %d, sum %d, program %d, %s, ROLE %s, in %s\n", rank, size, sum,
         found ? *number : -1, argc > 1 ? argv[1] : "no argument",
         getenv("ROLE") != NULL ? getenv("ROLE") : "unset", getcwd(folder, sizeof folder));
  MPI_Finalize();
  return 0;
}
