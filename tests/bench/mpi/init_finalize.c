/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The hlaunch authors */

/* The shortest MPI program, for mpi_speed.py. */

#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  return 0;
}
