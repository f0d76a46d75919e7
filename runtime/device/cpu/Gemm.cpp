//===- Gemm.cpp - matrix products by oneDNN --------------------------------===//

#include "runtime/device/cpu/Gemm.h"

#include "runtime/base/BFloat16.h"
#include "runtime/base/Log.h"
#include "runtime/device/cpu/Copy.h"
#include "runtime/device/cpu/Dnn.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <utility>

namespace tessera::cpu {
namespace {

using artifact::DataType;

/// Whether oneDNN multiplies bf16 matrices on this processor. ONEDNN_MAX_CPU_ISA can say less than the processor can.
bool dnnHasBFloat16() {
  static const bool has = [] {
    constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
    const bool found = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
    if (!found)
      log::info("products of bf16 are computed in f32: this processor has no AVX-512");
    return found;
  }();
  return has;
}

/// One operand as a matrix with a batch: strides in elements.
struct Matrix {
  int64_t rowStride = 0, columnStride = 0, batchStride = 0;
};

/// A product of one shape [batch, m, k] x [batch, k, n] that a library call can do.
struct Shape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  Matrix a, b, c;
  float alpha = 1, beta = 0;
  DataType inputs = DataType::F32, output = DataType::F32;

  std::vector<int64_t> key() const {
    return {batch,
            m,
            n,
            k,
            a.rowStride,
            a.columnStride,
            a.batchStride,
            b.rowStride,
            b.columnStride,
            b.batchStride,
            c.rowStride,
            c.columnStride,
            c.batchStride,
            std::bit_cast<int32_t>(alpha),
            std::bit_cast<int32_t>(beta),
            static_cast<int64_t>(inputs),
            static_cast<int64_t>(output)};
  }
};

/// The loops of batch dimensions that remain outside of the library call.
struct BatchLoop {
  int64_t size, a, b, c; // strides in elements, in the plan in bytes
};

bool isBroadcast(const TensorView &view, size_t dim) { return view.shape[dim] == 1 || view.strides[dim] == 0; }

class DnnGemm {
public:
  static Result<std::shared_ptr<DnnGemm>> create(const Shape &shape, Scratch &scratch) {
    auto made = std::shared_ptr<DnnGemm>(new DnnGemm(shape, scratch));
    if (shape.inputs == DataType::F32 && shape.batch == 1 && shape.a.rowStride == 1 && shape.a.columnStride != 1 &&
        shape.m > 1)
      return made; // sgemm
    TESSERA_RETURN_IF_ERROR(guardDnn("matrix product", [&] { made->createPrimitive(); }));
    return made;
  }

  Status run(const std::byte *a, const std::byte *b, std::byte *c) {
    if (!primitive) {
      const char *transposeB = shape.b.columnStride == 1 ? "N" : "T";
      dnnl_status_t status = dnnl_sgemm(
          'T', *transposeB, shape.m, shape.n, shape.k, shape.alpha, reinterpret_cast<const float *>(a),
          shape.a.columnStride, reinterpret_cast<const float *>(b), std::max(shape.b.rowStride, shape.b.columnStride),
          shape.beta, reinterpret_cast<float *>(c), shape.c.rowStride);
      if (status != dnnl_success)
        return TESSERA_ERROR(Internal, "oneDNN sgemm failed with status " + std::to_string(status));
      return Status::ok();
    }
    return guardDnn("matrix product", [&] {
      source.set_data_handle(const_cast<std::byte *>(a));
      weights.set_data_handle(const_cast<std::byte *>(b));
      target.set_data_handle(c);
      work.set_data_handle(scratch.data());
      primitive.execute(
          stream,
          {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, target}, {DNNL_ARG_SCRATCHPAD, work}});
    });
  }

private:
  DnnGemm(const Shape &shape, Scratch &scratch) : shape(shape), scratch(scratch) {}

  void createPrimitive() {
    auto describe = [&](const Matrix &matrix, int64_t rows, int64_t columns, DataType dtype) {
      using dnnl::memory;
      auto type = dtype == DataType::BF16 ? memory::data_type::bf16 : memory::data_type::f32;
      if (shape.batch == 1)
        return memory::desc({rows, columns}, type, memory::dims{matrix.rowStride, matrix.columnStride});
      // A broadcast batch has size 1, and any stride.
      int64_t size = matrix.batchStride == 0 ? 1 : shape.batch;
      int64_t stride = matrix.batchStride == 0 ? rows * columns : matrix.batchStride;
      return memory::desc({size, rows, columns}, type, memory::dims{stride, matrix.rowStride, matrix.columnStride});
    };
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape.alpha != 1)
      attributes.set_output_scales(0, {shape.alpha});
    if (shape.beta != 0) {
      dnnl::post_ops after;
      after.append_sum(shape.beta);
      attributes.set_post_ops(after);
    }
    auto a = describe(shape.a, shape.m, shape.k, shape.inputs), b = describe(shape.b, shape.k, shape.n, shape.inputs),
         c = describe(shape.c, shape.m, shape.n, shape.output);
    dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes, dnnEngine());
    primitive = dnnl::matmul(description);
    stream = dnnl::stream(dnnEngine());
    source = dnnl::memory(a, dnnEngine(), nullptr);
    weights = dnnl::memory(b, dnnEngine(), nullptr);
    target = dnnl::memory(c, dnnEngine(), nullptr);
    work = dnnl::memory(description.scratchpad_desc(), dnnEngine(), nullptr);
    scratch.require(description.scratchpad_desc().get_size());
  }

  Shape shape;
  Scratch &scratch;
  dnnl::matmul primitive;
  dnnl::stream stream;
  dnnl::memory source, weights, target, work;
};

/// An operand that the library cannot address (no unit stride) goes through a contiguous copy, one whose type it cannot
/// compute in through a conversion to f32.
struct Staging {
  std::unique_ptr<CopyPlan> in, out;
  std::vector<std::byte> copied;
  std::vector<float> converted;
  bool isConverted = false, isRead = false, isWritten = false;

  size_t bytes() const { return copied.size() + converted.size() * sizeof(float); }

  /// Where the library finds the operand that is at `data`.
  void *before(void *data, const Team &team) {
    if (in)
      in->run(data, copied.data(), team);
    void *found = copied.empty() ? data : copied.data();
    if (!isConverted)
      return found;
    const auto *halves = static_cast<const uint16_t *>(found);
    if (isRead)
      team.run(static_cast<int64_t>(converted.size()), 4096, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index)
          converted[index] = widenBFloat16(halves[index]);
      });
    return converted.data();
  }
  void after(void *data, const Team &team) {
    auto *halves = static_cast<uint16_t *>(copied.empty() ? data : copied.data());
    if (isConverted && isWritten)
      team.run(static_cast<int64_t>(converted.size()), 4096, [&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index)
          halves[index] = toBFloat16(converted[index]);
      });
    if (out)
      out->run(copied.data(), data, team);
  }
};

class OneDnnGemmPlan : public GemmPlan {
public:
  Status run(const void *a, const void *b, void *c) override {
    auto *left = static_cast<std::byte *>(staged[0].before(const_cast<void *>(a), team)),
         *right = static_cast<std::byte *>(staged[1].before(const_cast<void *>(b), team)),
         *target = static_cast<std::byte *>(staged[2].before(c, team));
    if (swapped)
      std::swap(left, right);
    TESSERA_RETURN_IF_ERROR(runLoops(0, left, right, target));
    staged[2].after(c, team);
    return Status::ok();
  }

  Status runLoops(size_t depth, const std::byte *a, const std::byte *b, std::byte *c) {
    if (depth == loops.size())
      return product->run(a, b, c);
    for (int64_t index = 0; index < loops[depth].size; ++index)
      TESSERA_RETURN_IF_ERROR(
          runLoops(depth + 1, a + index * loops[depth].a, b + index * loops[depth].b, c + index * loops[depth].c));
    return Status::ok();
  }

  std::shared_ptr<DnnGemm> product;
  std::vector<BatchLoop> loops;
  Staging staged[3];
  bool swapped = false; ///< computes the transposed product, bᵀ aᵀ
  Team team{omp_get_max_threads()};
};

/// Gives dimensions of size 1 the stride they would have in a row-major matrix.
Matrix normalise(const TensorView &view) {
  size_t rank = view.shape.size();
  int64_t rows = view.shape[rank - 2], columns = view.shape[rank - 1];
  Matrix matrix{view.strides[rank - 2], view.strides[rank - 1], 0};
  if (columns == 1 && rows == 1)
    return {1, 1, 0};
  if (columns == 1)
    matrix.columnStride = matrix.rowStride == 1 ? rows : 1;
  else if (rows == 1)
    matrix.rowStride = matrix.columnStride == 1 ? columns : 1;
  return matrix;
}

bool isAddressable(const Matrix &matrix, int64_t rows, int64_t columns) {
  return (matrix.columnStride == 1 && matrix.rowStride >= columns) ||
         (matrix.rowStride == 1 && matrix.columnStride >= rows);
}

/// Whether a batch of these matrices is one operand to the library, which wants each dimension, from the least stride
/// to the largest, to step over all of the one before. A batch of diagonals does not: [batch, 3] with strides 9 and 4.
bool isBatchAddressable(const Matrix &matrix, int64_t batchStride, int64_t batch, int64_t rows, int64_t columns) {
  if (batchStride == 0)
    return true;
  std::pair<int64_t, int64_t> dims[] = {{batchStride, batch}, {matrix.rowStride, rows}, {matrix.columnStride, columns}};
  std::sort(std::begin(dims), std::end(dims));
  return dims[1].first >= dims[0].first * dims[0].second && dims[2].first >= dims[1].first * dims[1].second;
}

/// Replaces a view that the library cannot address, or of a type that it cannot compute in, by a contiguous one.
TensorView stage(const TensorView &view, Staging &staging, bool isRead, bool isWritten) {
  size_t rank = view.shape.size();
  staging.isConverted = view.dtype == DataType::BF16 && !dnnHasBFloat16();
  staging.isRead = isRead;
  staging.isWritten = isWritten;
  const bool fits = staging.isConverted ? view.isContiguous()
                                        : isAddressable(normalise(view), view.shape[rank - 2], view.shape[rank - 1]);
  if (fits && !staging.isConverted)
    return view;
  TensorView dense = view;
  int64_t stride = 1;
  for (size_t dim = rank; dim-- > 0;) {
    dense.strides[dim] = stride;
    stride *= dense.shape[dim];
  }
  if (!fits) {
    staging.copied.resize(dense.bytes());
    if (isRead)
      staging.in = std::make_unique<CopyPlan>(view, dense);
    if (isWritten)
      staging.out = std::make_unique<CopyPlan>(dense, view);
  }
  if (staging.isConverted) {
    staging.converted.resize(stride);
    dense.dtype = DataType::F32;
  }
  return dense;
}

} // namespace

struct GemmPlanner::Impl {
  std::map<std::vector<int64_t>, std::shared_ptr<DnnGemm>> products;
  Scratch scratch;
  size_t stagedBytes = 0;
};

GemmPlanner::GemmPlanner() : impl(std::make_unique<Impl>()) {}
GemmPlanner::~GemmPlanner() = default;
size_t GemmPlanner::workspaceBytes() const { return impl->scratch.bytes() + impl->stagedBytes; }

Result<std::shared_ptr<GemmPlan>> GemmPlanner::plan(const TensorView &a, const TensorView &b, const TensorView &c,
                                                    float alpha, float beta) {
  auto plan = std::make_shared<OneDnnGemmPlan>();
  TensorView left = stage(a, plan->staged[0], true, false), right = stage(b, plan->staged[1], true, false),
             target = stage(c, plan->staged[2], beta != 0, true);
  for (const Staging &staging : plan->staged)
    impl->stagedBytes += staging.bytes();

  size_t rank = c.shape.size();
  Shape shape;
  shape.alpha = alpha;
  shape.beta = beta;
  shape.inputs = left.dtype;
  shape.output = target.dtype;
  shape.m = c.shape[rank - 2];
  shape.n = c.shape[rank - 1];
  shape.k = a.shape[rank - 1];
  shape.a = normalise(left);
  shape.b = normalise(right);
  shape.c = normalise(target);

  std::vector<BatchLoop> loops; // major first, merged where all three operands allow it
  for (size_t dim = 0; dim + 2 < rank; ++dim) {
    if (c.shape[dim] == 1)
      continue;
    BatchLoop loop{c.shape[dim], isBroadcast(left, dim) ? 0 : left.strides[dim],
                   isBroadcast(right, dim) ? 0 : right.strides[dim], target.strides[dim]};
    if (!loops.empty() && loops.back().a == loop.a * loop.size && loops.back().b == loop.b * loop.size &&
        loops.back().c == loop.c * loop.size)
      loops.back() = {loops.back().size * loop.size, loop.a, loop.b, loop.c};
    else
      loops.push_back(loop);
  }
  // A batch that only the rows have is more rows.
  while (!loops.empty() && loops.back().b == 0 && shape.a.columnStride == 1 && shape.c.columnStride == 1 &&
         loops.back().a == shape.a.rowStride * shape.m && loops.back().c == shape.c.rowStride * shape.m) {
    shape.m *= loops.back().size;
    loops.pop_back();
  }
  if (shape.c.columnStride != 1) {
    std::swap(shape.a, shape.b);
    std::swap(shape.m, shape.n);
    for (Matrix *matrix : {&shape.a, &shape.b, &shape.c})
      std::swap(matrix->rowStride, matrix->columnStride);
    for (BatchLoop &loop : loops)
      std::swap(loop.a, loop.b);
    plan->swapped = true;
  }
  if (!loops.empty() && loops.back().c != 0 &&
      isBatchAddressable(shape.a, loops.back().a, loops.back().size, shape.m, shape.k) &&
      isBatchAddressable(shape.b, loops.back().b, loops.back().size, shape.k, shape.n) &&
      isBatchAddressable(shape.c, loops.back().c, loops.back().size, shape.m, shape.n)) {
    BatchLoop inner = loops.back();
    loops.pop_back();
    shape.batch = inner.size;
    shape.a.batchStride = inner.a;
    shape.b.batchStride = inner.b;
    shape.c.batchStride = inner.c;
  }
  const auto inputWidth = static_cast<int64_t>(byteWidth(shape.inputs)),
             outputWidth = static_cast<int64_t>(byteWidth(shape.output));
  for (const BatchLoop &loop : loops)
    plan->loops.push_back({loop.size, loop.a * inputWidth, loop.b * inputWidth, loop.c * outputWidth});

  std::shared_ptr<DnnGemm> &known = impl->products[shape.key()];
  if (!known) {
    TESSERA_ASSIGN_OR_RETURN(known, DnnGemm::create(shape, impl->scratch));
  }
  plan->product = known;
  return std::shared_ptr<GemmPlan>(std::move(plan));
}

} // namespace tessera::cpu
