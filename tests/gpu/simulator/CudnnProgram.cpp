//===- CudnnProgram.cpp - a graph of operations of cuDNN, evaluated literally ----===//
//
// Dimensions of size 1 are broadcast. Where heads are grouped, as NVIDIA's frontend describes attention, a group's
// element of a product is that of all its heads, and a reduction adds up over them. A reshape keeps each element's
// place in memory.
//
//===----------------------------------------------------------------------===//

#include "CudnnProgram.h"

#include "Numbers.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

namespace tessera::sim {

int64_t GraphTensor::elements() const {
  int64_t count = 1;
  for (int64_t size : dims)
    count *= size;
  return count;
}

int64_t GraphTensor::width() const {
  return type == CUDNN_DATA_BOOLEAN ? 1 : type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16 ? 2 : 4;
}

int64_t GraphTensor::bytes() const {
  int64_t last = 0;
  for (size_t dim = 0; dim < dims.size(); ++dim)
    last += (dims[dim] - 1) * strides[dim];
  return (last + 1) * width();
}

bool Program::isConvolution() const { return operations.front().kind >= GraphOperation::Kind::Convolve; }

bool Program::addsInAnyOrder(const GraphOperation &product) const {
  const GraphTensor &sums = tensors.at(product.output);
  return product.kind == GraphOperation::Kind::Multiply && !sums.isVirtual && sums.type == CUDNN_DATA_FLOAT &&
         std::any_of(operations.begin(), operations.end(), [&](const GraphOperation &reader) {
           return reader.kind == GraphOperation::Kind::Pointwise && reader.mode == CUDNN_POINTWISE_IDENTITY &&
                  reader.inputs.front() == product.output;
         });
}
bool Program::isUnordered() const {
  return std::any_of(operations.begin(), operations.end(),
                     [this](const GraphOperation &operation) { return addsInAnyOrder(operation); });
}
bool Program::isF32() const {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const auto &one) { return one.second.isVirtual || one.second.type == CUDNN_DATA_FLOAT; });
}

int64_t Program::workspaceBytes() const {
  int64_t bytes = 16;
  for (const auto &[id, one] : tensors)
    bytes = std::max(bytes, one.elements() * 2);
  return bytes;
}

namespace {

[[noreturn]] void fail(const std::string &what) { throw KernelFault(CUDA_ERROR_LAUNCH_FAILED, "cuDNN: " + what); }

using Index = std::vector<int64_t>;
using Values = std::vector<float>; ///< of all elements, row-major

Index indexOf(const GraphTensor &tensor, int64_t linear) {
  Index index(tensor.dims.size());
  for (size_t dim = index.size(); dim-- > 0; linear /= tensor.dims[dim])
    index[dim] = linear % tensor.dims[dim];
  return index;
}

int64_t linearOf(const GraphTensor &tensor, const Index &index) {
  int64_t linear = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    linear = linear * tensor.dims[dim] + index[dim];
  return linear;
}

Index rowMajor(const Index &dims) {
  Index strides(dims.size(), 1);
  for (size_t dim = dims.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * dims[dim];
  return strides;
}

/// For each index below `dims`, row-major: where the element lies that belongs to it in a tensor of `sizes`, which
/// divide `dims`.
Index placesOf(const Index &dims, const Index &sizes, const Index &strides) {
  Index places = {0};
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    Index next;
    next.reserve(places.size() * static_cast<size_t>(dims[dim]));
    for (int64_t place : places)
      for (int64_t at = 0; at < dims[dim]; ++at)
        next.push_back(place + at / (dims[dim] / sizes[dim]) * strides[dim]);
    places = std::move(next);
  }
  return places;
}
Index placesOf(const GraphTensor &tensor) { return placesOf(tensor.dims, tensor.dims, tensor.strides); }

float rounded(const GraphTensor &tensor, float value) {
  return tensor.type == CUDNN_DATA_BFLOAT16 ? Bf16::widen(Bf16::narrow(value))
         : tensor.type == CUDNN_DATA_HALF   ? F16::widen(F16::narrow(value))
                                            : value;
}

class Evaluator {
public:
  Evaluator(const Program &program, const Bindings &bound, const Gpu &gpu) : program(program), bound(bound), gpu(gpu) {}

  void run() {
    auto bytes = static_cast<uint64_t>(program.workspaceBytes());
    if (bound.workspace % 16 != 0)
      fail("the workspace is not aligned to 16");
    std::memset(gpu.resolve(bound.workspace, bytes, "the workspace of cuDNN"), 0x7f, bytes);
    for (const GraphOperation &operation : program.operations) {
      const GraphTensor &output = tensor(operation.output);
      Values made(static_cast<size_t>(output.elements()));
      switch (operation.kind) {
      case GraphOperation::Kind::Pointwise:
        pointwise(operation, output, made);
        break;
      case GraphOperation::Kind::Reduce:
        reduce(operation, output, made);
        break;
      case GraphOperation::Kind::Multiply:
        multiply(operation, output, made);
        break;
      case GraphOperation::Kind::Reshape:
        reshape(operation, output, made);
        break;
      default:
        convolve(operation, output, made);
      }
      for (float &value : made)
        value = rounded(output, value);
      if (!output.isVirtual) {
        checkAlone(output);
        store(output, made);
      }
      known[output.id] = std::move(made);
    }
  }

private:
  const GraphTensor &tensor(int64_t id) const { return program.tensors.at(id); }

  std::byte *memory(const GraphTensor &tensor) const {
    uint64_t pointer = bound.pointers.at(tensor.id);
    if (pointer % static_cast<uint64_t>(tensor.alignment) != 0)
      fail("tensor " + std::to_string(tensor.id) + " is not aligned to " + std::to_string(tensor.alignment));
    return gpu.resolve(pointer, static_cast<uint64_t>(tensor.bytes()), "cuDNN");
  }

  /// The halves of words that a tensor's elements are.
  Index halves(const GraphTensor &tensor) const {
    Index made;
    auto first = static_cast<int64_t>(bound.pointers.at(tensor.id));
    for (int64_t place : placesOf(tensor))
      for (int64_t byte = 0; byte < tensor.width(); byte += 2)
        made.push_back((first + place * tensor.width() + byte) / 2);
    std::sort(made.begin(), made.end());
    return made;
  }

  /// Kernels read and write in an order of their own.
  void checkAlone(const GraphTensor &output) const {
    uint64_t begin = bound.pointers.at(output.id), end = begin + static_cast<uint64_t>(output.bytes());
    if (begin < bound.workspace + static_cast<uint64_t>(program.workspaceBytes()) && bound.workspace < end)
      fail("tensor " + std::to_string(output.id) + " lies in the workspace");
    for (const auto &[id, other] : bound.pointers) {
      if (id == output.id || other >= end || other + static_cast<uint64_t>(tensor(id).bytes()) <= begin)
        continue;
      Index mine = halves(output), theirs = halves(tensor(id)), both;
      std::set_intersection(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::back_inserter(both));
      if (!both.empty())
        fail("tensor " + std::to_string(output.id) + " is written over tensor " + std::to_string(id));
    }
  }

  const Values &load(int64_t id) {
    if (auto found = known.find(id); found != known.end())
      return found->second;
    const GraphTensor &from = tensor(id);
    Values &made = known[id];
    made.resize(static_cast<size_t>(from.elements()));
    if (from.isByValue) {
      made[0] = bound.values.at(id);
      return made;
    }
    const std::byte *data = memory(from);
    Index places = placesOf(from);
    for (size_t element = 0; element < made.size(); ++element)
      if (from.width() == 4) {
        std::memcpy(&made[element], data + places[element] * 4, 4);
      } else {
        uint16_t bits = 0;
        std::memcpy(&bits, data + places[element] * 2, 2);
        made[element] = from.type == CUDNN_DATA_BFLOAT16 ? Bf16::widen(bits) : F16::widen(bits);
      }
    return made;
  }

  void store(const GraphTensor &to, const Values &values) const {
    std::byte *data = memory(to);
    Index places = placesOf(to);
    for (size_t element = 0; element < values.size(); ++element)
      if (to.width() == 4) {
        std::memcpy(data + places[element] * 4, &values[element], 4);
      } else {
        uint16_t bits = to.type == CUDNN_DATA_BFLOAT16 ? Bf16::narrow(values[element]) : F16::narrow(values[element]);
        std::memcpy(data + places[element] * 2, &bits, 2);
      }
  }

  static float compute(cudnnPointwiseMode_t mode, float x, float b, float t) {
    switch (mode) {
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b ? 1.0F : 0.0F;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      fail("pointwise mode " + std::to_string(mode) + " is not simulated");
    }
  }

  void pointwise(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    if (operation.mode == CUDNN_POINTWISE_GEN_INDEX) {
      Index strides(output.dims.size());
      strides[static_cast<size_t>(operation.axis)] = 1;
      Index places = placesOf(output.dims, output.dims, strides);
      std::copy(places.begin(), places.end(), made.begin());
      return;
    }
    const Values *inputs[3] = {};
    Index places[3];
    size_t count = operation.inputs.size();
    for (size_t input = 0; input < count; ++input) {
      const GraphTensor &from = tensor(operation.inputs[input]);
      inputs[input] = &load(from.id);
      places[input] = placesOf(output.dims, from.dims, rowMajor(from.dims));
    }
    for (size_t element = 0; element < made.size(); ++element) {
      float values[3] = {};
      for (size_t input = 0; input < count; ++input)
        values[input] = (*inputs[input])[static_cast<size_t>(places[input][element])];
      made[element] = compute(operation.mode, values[0], values[1], values[2]);
    }
  }

  void reduce(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    bool isMax = operation.reduction == CUDNN_REDUCE_TENSOR_MAX;
    std::fill(made.begin(), made.end(), isMax ? -std::numeric_limits<float>::infinity() : 0.0F);
    const Values &values = load(operation.inputs[0]);
    Index places = placesOf(tensor(operation.inputs[0]).dims, output.dims, rowMajor(output.dims));
    for (size_t element = 0; element < values.size(); ++element) {
      float &to = made[static_cast<size_t>(places[element])];
      to = isMax ? std::max(to, values[element]) : to + values[element];
    }
  }

  void multiply(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    const GraphTensor &a = tensor(operation.inputs[0]), &b = tensor(operation.inputs[1]);
    const Values &left = load(a.id), &right = load(b.id);
    auto matrices = [](const GraphTensor &one) { return Index(one.dims.begin(), one.dims.end() - 2); };
    int64_t m = output.dims.end()[-2], n = output.dims.back(), k = a.dims.back();
    Index of = matrices(output), fromA = placesOf(of, matrices(a), rowMajor(matrices(a))),
          fromB = placesOf(of, matrices(b), rowMajor(matrices(b)));
    Index order(static_cast<size_t>(k));
    std::iota(order.begin(), order.end(), 0);
    if (program.addsInAnyOrder(operation))
      std::shuffle(order.begin(), order.end(), Simulator::get().random);
    for (size_t matrix = 0; matrix < fromA.size(); ++matrix) {
      const float *x = left.data() + fromA[matrix] * m * k, *y = right.data() + fromB[matrix] * k * n;
      float *z = made.data() + static_cast<int64_t>(matrix) * m * n;
      for (int64_t row = 0; row < m; ++row)
        for (int64_t inner : order)
          for (int64_t column = 0; column < n; ++column)
            z[row * n + column] += x[row * k + inner] * y[inner * n + column];
    }
  }

  void reshape(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    const GraphTensor &input = tensor(operation.inputs[0]);
    const Values &values = load(input.id);
    Index from = placesOf(input), to = placesOf(output);
    std::vector<const float *> memory(static_cast<size_t>(*std::max_element(from.begin(), from.end())) + 1);
    for (size_t element = 0; element < values.size(); ++element)
      memory[static_cast<size_t>(from[element])] = &values[element];
    for (size_t element = 0; element < made.size(); ++element) {
      auto place = static_cast<size_t>(to[element]);
      if (place >= memory.size() || !memory[place])
        fail("a reshape reads what its input has not");
      made[element] = *memory[place];
    }
  }

  /// inputs: x and w, dy and w, or x and dy; the output is y, dx or dw. A cross-correlation over two dimensions.
  void convolve(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    using Kind = GraphOperation::Kind;
    const GraphTensor &first = tensor(operation.inputs[0]), &second = tensor(operation.inputs[1]);
    const Values &left = load(first.id), &right = load(second.id);
    const GraphTensor &x = operation.kind == Kind::ConvolveInputGrad ? output : first;
    const GraphTensor &w = operation.kind == Kind::ConvolveWeightGrad ? output : second;
    const GraphTensor &y = operation.kind == Kind::Convolve            ? output
                           : operation.kind == Kind::ConvolveInputGrad ? first
                                                                       : second;
    int64_t groups = x.dims[1] / w.dims[1];
    for (int64_t element = 0; element < y.elements(); ++element) {
      Index at = indexOf(y, element);
      int64_t group = at[1] / (y.dims[1] / groups);
      for (int64_t weight = 0; weight < w.elements() / w.dims[0]; ++weight) {
        Index tap = indexOf(w, at[1] * (w.elements() / w.dims[0]) + weight);
        Index from = {at[0], group * w.dims[1] + tap[1], 0, 0};
        bool isInside = true;
        for (size_t dim = 0; dim < 2; ++dim) {
          from[dim + 2] =
              at[dim + 2] * operation.strides[dim] - operation.before[dim] + tap[dim + 2] * operation.dilations[dim];
          isInside &= from[dim + 2] >= 0 && from[dim + 2] < x.dims[dim + 2];
        }
        if (!isInside)
          continue;
        auto xAt = static_cast<size_t>(linearOf(x, from)), wAt = static_cast<size_t>(linearOf(w, tap)),
             yAt = static_cast<size_t>(element);
        if (operation.kind == Kind::Convolve)
          made[yAt] += left[xAt] * right[wAt];
        else if (operation.kind == Kind::ConvolveInputGrad)
          made[xAt] += left[yAt] * right[wAt];
        else
          made[wAt] += left[xAt] * right[yAt];
      }
    }
  }

  const Program &program;
  const Bindings &bound;
  const Gpu &gpu;
  std::map<int64_t, Values> known;
};

} // namespace

void evaluate(const Program &program, const Bindings &bound, const Gpu &gpu) { Evaluator(program, bound, gpu).run(); }

} // namespace tessera::sim
