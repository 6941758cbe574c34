/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The hlaunch authors */

/* One rank of comm_speed.py with MPI: the same calls in the same order as comm_load.cc. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static size_t bytes;
static char *from, *into;

static void call(const char* verb) {
  const int count = (int)(bytes / 4);
  if (!strcmp(verb, "barrier")) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(verb, "all_reduce")) {
    MPI_Allreduce(from, into, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (!strcmp(verb, "broadcast")) {
    MPI_Bcast(from, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  } else if (!strcmp(verb, "all_gather")) {
    MPI_Allgather(from, count, MPI_FLOAT, into, count, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (!strcmp(verb, "reduce_scatter")) {
    MPI_Reduce_scatter_block(from, into, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (!strcmp(verb, "all_to_all")) {
    MPI_Alltoall(from, count, MPI_FLOAT, into, count, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (rank % 2 == 0) {
    MPI_Send(from, count, MPI_FLOAT, rank ^ 1, 0, MPI_COMM_WORLD);
    MPI_Recv(into, count, MPI_FLOAT, rank ^ 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(into, count, MPI_FLOAT, rank ^ 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(from, count, MPI_FLOAT, rank ^ 1, 0, MPI_COMM_WORLD);
  }
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const char* verb, const char* size_text, int times) {
  bytes = strtoull(size_text, NULL, 10);
  // Fills both buffers, but not with zeros: the compiler turns malloc and memset with 0 into
  // calloc, whose pages all map to the kernel's one page of zeros until written, which costs no
  // memory.
  from = malloc(size * bytes + 1);
  into = malloc(size * bytes + 1);
  memset(from, 1, size * bytes + 1);
  memset(into, 1, size * bytes + 1);
  for (int i = 0; i < times / 10 + 2; ++i) call(verb);
  double rounds[5];
  for (int round = 0; round < 5; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < times; ++i) call(verb);
    rounds[round] = (MPI_Wtime() - begin) * 1e6 / times;
  }
  qsort(rounds, 5, sizeof *rounds, by_size);
  if (rank == 0) printf("%.3f\n", rounds[2]);
  free(from);
  free(into);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc % 3 != 1) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int row = 1; row < argc; row += 3) measure(argv[row], argv[row + 1], atoi(argv[row + 2]));
  MPI_Finalize();
  return 0;
}
