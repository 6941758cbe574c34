// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

// An MPI program that hangs in the way its argument says, or is slow and healthy. The last rank
// differs from the others.

#include <fcntl.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size, value;
static volatile double sum;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute(double seconds) {
  for (const double end = now() + seconds; now() < end;) sum += 1;
}

static void load_shard(const char* mode) {
  if (!strcmp(mode, "sleep")) sleep(600);
  if (!strcmp(mode, "poll")) poll(NULL, 0, 600000);
  if (!strcmp(mode, "stop")) raise(SIGSTOP);
  if (!strcmp(mode, "loop")) compute(600);
}

static void step(int number, const char* mode) {
  if (number == 5 && rank == size - 1) load_shard(mode);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void receive(int from) {
  MPI_Recv(&value, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send(int to) { MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD); }

// The last rank reads for the others, which wait for it: 100 kB in a second.
static void read_for_all(double end) {
  char buffer[10240];
  const int file = open("/dev/zero", O_RDONLY);
  while (rank == size - 1 && now() < end) {
    if (read(file, buffer, sizeof buffer) > 0) usleep(100000);
  }
  MPI_Bcast(&value, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
}

// The last rank is always late.
static void imbalanced(double end) {
  for (int more = 1; more;) {
    if (rank == size - 1) compute(1);
    more = now() < end;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// The first two do nothing but pass a message; the last one serves something else and sleeps.
static void ping_pong(double end) {
  if (rank == size - 1) return (void)sleep((unsigned)(end - now()));
  for (int more = 1; rank < 2 && more;) {
    more = now() < end;
    value = more;
    if (rank == 0) {
      send(1);
      receive(1);
    } else {
      receive(0);
      more = value;
      send(0);
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char* mode = argv[1];
  const double end = now() + (argc > 2 ? 1.0 * (argv[2][0] - '0') * 10 : 0);
  if (!strcmp(mode, "receive")) {
    rank == size - 1 ? (void)sleep(600) : receive(size - 1);
  } else if (!strcmp(mode, "deadlock")) {
    receive((rank + 1) % size);
  } else if (!strcmp(mode, "compute")) {
    compute(end - now());
  } else if (!strcmp(mode, "reads")) {
    read_for_all(end);
  } else if (!strcmp(mode, "imbalanced")) {
    imbalanced(end);
  } else if (!strcmp(mode, "ping-pong")) {
    ping_pong(end);
  } else {
    for (int i = 0; i < 10; ++i) step(i, mode);
  }
  MPI_Finalize();
  printf("done\n");
  return 0;
}
