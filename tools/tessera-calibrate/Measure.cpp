//===- Measure.cpp - kernels, products and attention, on all ranks at once ------------===//

#include "tools/tessera-calibrate/Measure.h"

#include "runtime/device/cpu/Attention.h"
#include "runtime/device/cpu/Conv.h"
#include "runtime/device/cpu/Gemm.h"
#include "tools/tessera-calibrate/Communication.h"
#include "tools/tessera-calibrate/Lockstep.h"

#include <thread>

namespace tessera::calibrate {

namespace {

TensorView contiguous(void *data, std::vector<int64_t> shape) {
  TensorView view;
  view.data = data;
  view.shape = std::move(shape);
  view.strides.assign(view.shape.size(), 1);
  for (size_t dim = view.shape.size() - 1; dim-- > 0;)
    view.strides[dim] = view.strides[dim + 1] * view.shape[dim + 1];
  return view;
}

TensorView transposed(TensorView view) {
  std::swap(view.shape[0], view.shape[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

/// Values that are neither zero nor denormal: some processors are slow on those, and zeros hide it.
std::vector<float> values(int64_t count) {
  std::vector<float> result(static_cast<size_t>(count));
  uint32_t state = 12345;
  for (float &value : result) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
  }
  return result;
}

/// One rank's part of the measurements. All ranks make the same calls in the same order, also after an error.
class RankMeasurement {
public:
  RankMeasurement(int rank, const Options &options, Lockstep &lockstep)
      : rank(rank), options(options), lockstep(lockstep), team(options.threads) {
    team.adopt();
  }

  Status run(Measurements &result, Communicator &communicator) {
    Status status = products(result);
    memory(result);
    operations(result);
    attention(result);
    if (status.isOk())
      status = convolution(result);
    Status communication = measureCommunication(rank, options, lockstep, team, communicator, result);
    return status.isOk() ? communication : status;
  }

private:
  double time(const std::function<void()> &body) { return lockstep.time(rank, body); }

  /// Each shape in the three layouts of a training step: activations times weights, output gradients times weights
  /// transposed, and activations transposed times output gradients. Their mean counts.
  Status products(Measurements &result) {
    std::vector<std::array<int64_t, 3>> shapes;
    const std::vector<int64_t> sizes =
        options.quick ? std::vector<int64_t>{64, 256} : std::vector<int64_t>{32, 128, 512, 2048};
    for (int64_t m : sizes)
      for (int64_t n : sizes)
        for (int64_t k : sizes)
          shapes.push_back({m, n, k});
    if (!options.quick)
      for (auto shape : {std::array<int64_t, 3>{512, 32768, 768},
                         {512, 768, 32768},
                         {32768, 768, 512},
                         {1024, 768, 768},
                         {1024, 3072, 768},
                         {1024, 768, 3072},
                         {768, 3072, 1024},
                         {3072, 768, 1024}})
        shapes.push_back(shape);
    Status failure;
    for (const auto &[m, n, k] : shapes) {
      std::vector<float> a = values(m * k), b = values(k * n), c(static_cast<size_t>(m * n));
      double seconds = 0;
      for (int layout = 0; layout < 3; ++layout) {
        cpu::GemmPlanner planner;
        TensorView left = layout == 2 ? transposed(contiguous(a.data(), {k, m})) : contiguous(a.data(), {m, k});
        TensorView right = layout == 1 ? transposed(contiguous(b.data(), {n, k})) : contiguous(b.data(), {k, n});
        auto plan = planner.plan(left, right, contiguous(c.data(), {m, n}), 1, 0);
        if (!plan.isOk() && failure.isOk())
          failure = plan.status();
        seconds += time([&] {
          if (plan.isOk())
            if (Status status = (*plan)->run(a.data(), b.data(), c.data()); !status.isOk() && failure.isOk())
              failure = status;
        });
      }
      const double flops = 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
      result.gemm.push_back({m, n, k, 3 * flops / seconds});
    }
    return failure;
  }

  /// A kernel that reads two arrays and writes a third, as most generated kernels do.
  void memory(Measurements &result) {
    const int64_t largest = options.quick ? 1 << 18 : 1 << 24;
    std::vector<float> a = values(largest), b = values(largest), c(static_cast<size_t>(largest));
    auto run = [&](int64_t elements) {
      const float *x = a.data(), *y = b.data();
      float *z = c.data();
      return time([&, x, y, z] {
        team.run(elements, 4096, [=](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            z[i] = 0.5F * x[i] + y[i];
        });
      });
    };
    // Two chunks of a few elements: what a launch on the whole team costs.
    result.launch = run(4096 * 2) - std::max(0.0, run(4096 * 4) - run(4096 * 2));
    result.launch = std::max(result.launch, 1e-7);
    for (int64_t elements = 1 << 12; elements <= largest; elements *= 4)
      addRate(result.memory, 12 * static_cast<double>(elements), run(elements), result.launch, elements == largest);
  }

  /// A polynomial on data in the innermost cache.
  void operations(Measurements &result) {
    std::vector<float> a = values(1 << 12);
    float *data = a.data();
    const auto elements = static_cast<int64_t>(a.size());
    constexpr int kTerms = 16;
    const double seconds = time([&] {
      for (int64_t i = 0; i < elements; ++i) {
        float sum = data[i];
        for (int term = 0; term < kTerms; ++term)
          sum = sum * 0.5F + 0.25F;
        data[i] = sum;
      }
    });
    // Each thread of the rank does as much.
    result.kernelOperations = 2.0 * kTerms * static_cast<double>(elements) * team.threads() / seconds;
  }

  void attention(Measurements &result) {
    const std::vector<int64_t> lengths =
        options.quick ? std::vector<int64_t>{64} : std::vector<int64_t>{128, 256, 512, 1024};
    for (int64_t length : lengths) {
      const int64_t batch = std::max<int64_t>(1, 512 / length), heads = 8, depth = 64;
      const int64_t elements = batch * heads * length * depth;
      std::vector<std::vector<float>> tensors(8, values(elements));
      std::vector<float> lse(static_cast<size_t>(batch * heads * length));
      auto view = [&](int index) { return contiguous(tensors[index].data(), {batch, heads, length, depth}); };
      cpu::AttentionGradArguments arguments;
      arguments.q = view(0);
      arguments.k = view(1);
      arguments.v = view(2);
      arguments.out = view(3);
      arguments.dout = view(4);
      arguments.dq = view(5);
      arguments.dk = view(6);
      arguments.dv = view(7);
      arguments.lse = contiguous(lse.data(), {batch, heads, length});
      arguments.scale = 0.125;
      arguments.causal = true;
      cpu::Scratch scratch;
      scratch.require(cpu::attentionGradScratchBytes(arguments, team));
      const double product = static_cast<double>(elements) * static_cast<double>(length); // 2 * half of the scores
      const auto keys = static_cast<double>(length);
      result.attentionForward.emplace_back(keys, 2 * product / time([&] { cpu::attention(arguments, scratch, team); }));
      result.attentionBackward.emplace_back(keys,
                                            5 * product / time([&] { cpu::attentionGrad(arguments, scratch, team); }));
    }
  }

  Status convolution(Measurements &result) {
    const int64_t batch = 8, channels = options.quick ? 8 : 64, size = options.quick ? 8 : 28;
    std::vector<float> x = values(batch * channels * size * size), w = values(channels * channels * 9), y(x.size());
    cpu::ConvPlanner planner;
    cpu::ConvShape shape;
    shape.strides = shape.dilations = {1, 1};
    shape.padding = {1, 1, 1, 1};
    auto plan = planner.plan(shape, contiguous(x.data(), {batch, channels, size, size}),
                             contiguous(w.data(), {channels, channels, 3, 3}),
                             contiguous(y.data(), {batch, channels, size, size}));
    Status failure = plan.isOk() ? Status::ok() : plan.status();
    const double seconds = time([&] {
      if (plan.isOk())
        if (Status status = (*plan)->run(x.data(), w.data(), y.data()); !status.isOk() && failure.isOk())
          failure = status;
    });
    result.convolution = 2.0 * 9 * static_cast<double>(channels) * static_cast<double>(y.size()) / seconds;
    return failure;
  }

  const int rank;
  const Options &options;
  Lockstep &lockstep;
  cpu::Team team;
};

} // namespace

void addRate(Points &points, double size, double seconds, double constant, bool isLast) {
  if (seconds > 2 * constant)
    points.emplace_back(size, size / (seconds - constant));
  else if (isLast)
    points.emplace_back(size, size / seconds);
}

Result<Measurements> measure(const Options &options) {
  Lockstep lockstep(options.ranks, options.repeats, options.quick ? 1e-4 : 5e-3, options.cpuTime);
  auto world = createLocalWorld(options.ranks);
  std::vector<Measurements> results(static_cast<size_t>(options.ranks));
  std::vector<Status> statuses(static_cast<size_t>(options.ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank)
    threads.emplace_back(
        [&, rank] { statuses[rank] = RankMeasurement(rank, options, lockstep).run(results[rank], *world[rank]); });
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : statuses)
    TESSERA_RETURN_IF_ERROR(status);
  return std::move(results.front());
}

} // namespace tessera::calibrate
