// Times gloo::allreduce, the call behind PyTorch's Gloo backend, of floats over TCP as railgauge's agents time theirs:
// batches of operations back to back, each timed by every rank with its own clock. Prints one time per operation and
// batch, in microseconds, for each rank in a file of its own: whoever reads them takes the slowest.
// usage: gloo_allreduce RANK RANKS STORE BYTES BATCH BATCHES
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
  const long bytes = atol(argv[4]), batch = atol(argv[5]), batches = atol(argv[6]);
  gloo::transport::tcp::attr attr;
  attr.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attr);
  auto store = gloo::rendezvous::FileStore(argv[3]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  const size_t count = bytes / sizeof(float);
  std::vector<float> in(count), out(count, -1);
  for (size_t i = 0; i < count; i++) in[i] = (i + rank) % 13;
  gloo::AllreduceOptions options(context);
  options.setInput(in.data(), count);
  options.setOutput(out.data(), count);
  void (*sum)(void*, const void*, const void*, size_t) = &gloo::sum<float>;
  options.setReduceFunction(sum);
  for (int i = 0; i < 2; i++) gloo::allreduce(options);
  for (size_t i = 0; i < count; i++) {
    float want = 0;
    for (int r = 0; r < ranks; r++) want += (i + r) % 13;
    if (out[i] != want) return 4;
  }
  gloo::BarrierOptions together(context);
  std::vector<double> times;
  for (long b = 0; b < batches; b++) {
    if (b == 0) gloo::barrier(together);
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < batch; i++) gloo::allreduce(options);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count() / batch);
  }
  gloo::barrier(together);
  for (double time : times) printf("%.3f\n", time);
  return 0;
}
