/* Times MPI_Allreduce of floats as railgauge's agents time theirs: batches of operations back to back, each batch
 * timed by every rank with its own clock, the slowest rank counts. Prints one time per operation and batch, in
 * microseconds. usage: mpi_allreduce BYTES BATCH BATCHES
 *        mpi_allreduce FIFO: every rank reads lines of the same three numbers from a FIFO of its own host, and rank 0
 *        prints "done" after each. A rank that waits there takes no processor, which one that waits within MPI does. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void measure(int rank, int ranks, long bytes, long batch, long batches) {
    long count = bytes / (long)sizeof(float);
    float *in = malloc(bytes), *out = malloc(bytes);
    if (!in || !out) MPI_Abort(MPI_COMM_WORLD, 3);
    for (long i = 0; i < count; i++) in[i] = (float)((i + rank) % 13), out[i] = -1;
    for (int i = 0; i < 2; i++) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < count; i++) {
        float want = 0;
        for (int r = 0; r < ranks; r++) want += (float)((i + r) % 13);
        if (out[i] != want) MPI_Abort(MPI_COMM_WORLD, 4);
    }
    for (long b = 0; b < batches; b++) {
        if (b == 0) MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (long i = 0; i < batch; i++) MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double mine = (MPI_Wtime() - begin) / batch * 1e6, slowest;
        MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("%.3f\n", slowest);
    }
    free(in), free(out);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc == 4) {
        measure(rank, ranks, atol(argv[1]), atol(argv[2]), atol(argv[3]));
    } else if (argc == 2) {
        FILE *orders = fopen(argv[1], "r");
        long bytes, batch, batches;
        if (!orders) MPI_Abort(MPI_COMM_WORLD, 5);
        while (fscanf(orders, "%ld %ld %ld", &bytes, &batch, &batches) == 3) {
            measure(rank, ranks, bytes, batch, batches);
            if (rank == 0) printf("done\n"), fflush(stdout);
        }
    } else {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
