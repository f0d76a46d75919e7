//===- artifact_seeds.cpp - payloads for the fuzzer to begin with ----------===//

#include "tests/runtime/ArtifactBuilder.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace tessera;
using test::ArtifactBuilder;

static void write(const std::string &folder, const std::string &name, const ArtifactBuilder &builder) {
  std::vector<uint8_t> bytes = test::serialise(builder.package);
  constexpr size_t header = sizeof(artifact::FileHeader);
  std::ofstream(folder + "/" + name, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data() + header),
             static_cast<std::streamsize>(bytes.size() - header));
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz-artifact-seeds <folder>\n");
    return 2;
  }
  std::string folder = argv[1];
  std::filesystem::create_directories(folder);

  ArtifactBuilder gpu;
  gpu.package.target = "sm_90";
  for (artifact::CodeFormat format : {artifact::CodeFormat::Cubin, artifact::CodeFormat::Ptx}) {
    auto object = std::make_unique<artifact::CodeObjectT>();
    object->format = format;
    object->target = "sm_90";
    object->data = {'x', 0};
    gpu.package.code_objects.push_back(std::move(object));
  }
  auto kernel = std::make_unique<artifact::KernelT>();
  kernel->symbol = "k";
  kernel->ptx = 1;
  kernel->blocks = 4;
  kernel->threads_x = 32;
  kernel->threads_y = 4;
  gpu.package.kernels.push_back(std::move(kernel));
  write(folder, "gpu", gpu);

  ArtifactBuilder compute;
  uint32_t a = compute.buffer({4, 8}), b = compute.buffer({8, 6}), c = compute.buffer({4, 6});
  compute.beginLoop(3);
  compute.gemm(a, b, c, 1);
  artifact::GemmT product;
  product.a = a;
  product.b = b;
  product.c = c;
  product.epilogue = artifact::Epilogue::GeluAuxBias;
  product.epilogue_input = static_cast<int32_t>(compute.buffer({6}));
  product.epilogue_output = static_cast<int32_t>(compute.buffer({4, 6}));
  compute.add(product);
  artifact::GemmT scaled;
  const uint32_t float8 = compute.buffer({16, 128}, artifact::DataType::F8E4M3FN);
  scaled.a = float8;
  scaled.b = compute.view(float8, {128, 16}, {1, 128});
  scaled.c = compute.buffer({16, 16});
  scaled.a_scale_mode = scaled.b_scale_mode = artifact::ScaleMode::Block128;
  scaled.a_scales = scaled.b_scales = static_cast<int32_t>(compute.buffer({1, 16}));
  compute.add(scaled);
  compute.fill(c, 2);
  compute.copy(c, compute.buffer({4, 6}));
  compute.endLoop();
  artifact::AttentionT attention;
  attention.q = compute.buffer({1, 2, 4, 8});
  attention.k = attention.v = compute.buffer({1, 1, 6, 8});
  attention.out = compute.buffer({1, 2, 4, 8});
  attention.lse = compute.buffer({1, 2, 4});
  attention.mask = static_cast<int32_t>(compute.buffer({1, 1, 4, 6}, artifact::DataType::Bool));
  compute.add(attention);
  artifact::ConvT conv;
  conv.x = compute.buffer({1, 2, 5, 5});
  conv.w = compute.buffer({2, 2, 3, 3});
  conv.y = compute.buffer({1, 2, 3, 3});
  conv.strides = conv.dilations = {1, 1};
  conv.padding = {0, 0, 0, 0};
  compute.add(std::move(conv));
  compute.result("loss", compute.buffer({}), artifact::ResultRole::Loss);
  write(folder, "compute", compute);

  ArtifactBuilder narrow;
  using artifact::DataType;
  auto half = [&](std::vector<int64_t> shape) { return narrow.buffer(std::move(shape), DataType::BF16); };
  uint32_t narrowA = half({4, 8}), narrowB = half({8, 6});
  narrow.gemm(narrowA, narrowB, half({4, 6}));
  narrow.gemm(narrowA, narrowB, narrow.buffer({4, 6}));
  attention.q = half({1, 2, 4, 8});
  attention.k = attention.v = half({1, 1, 6, 8});
  attention.out = half({1, 2, 4, 8});
  attention.lse = narrow.buffer({1, 2, 4});
  attention.mask = -1;
  narrow.add(attention);
  write(folder, "narrow", narrow);

  ArtifactBuilder sharded({{"replicate", 2}, {"shard", 2}});
  uint32_t group = sharded.group({"shard"}), part = sharded.buffer({24}), whole = sharded.buffer({48});
  uint32_t slice = sharded.view(whole, {24}, {1}), event = sharded.newEvent();
  sharded.package.buffers[slice]->rank_group = 0;
  sharded.package.buffers[slice]->rank_stride = 96;
  sharded.collective(artifact::CollectiveKind::AllGather, group, part, whole, 1);
  sharded.record(event, 1);
  sharded.wait(event, 0);
  auto state = std::make_unique<artifact::StateTensorT>();
  state->name = "unit";
  state->elements = 48;
  state->shard_group = 0;
  state->buffer = part;
  auto segment = std::make_unique<artifact::SegmentT>();
  segment->name = "w";
  segment->shape = {5, 9};
  state->segments.push_back(std::move(segment));
  sharded.package.state.push_back(std::move(state));
  auto batch = std::make_unique<artifact::BatchTensorT>();
  batch->name = "tokens";
  batch->global_shape = {48};
  batch->dims = {artifact::DimRole::Sample};
  batch->splits.push_back(std::make_unique<artifact::DimSplitT>());
  batch->buffer = part;
  sharded.program().batch.push_back(std::move(batch));
  write(folder, "sharded", sharded);
  return 0;
}
