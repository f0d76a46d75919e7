//===- CudnnProgram.cpp - a graph of operations of cuDNN, evaluated literally ----===//
//
// Dimensions of size 1 are broadcast. Where heads are grouped, as NVIDIA's frontend describes attention, a group's
// element is that of all its heads. A reshape keeps each element's place in memory.
//
//===----------------------------------------------------------------------===//

#include "CudnnProgram.h"

#include "Numbers.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tessera::sim {

int64_t GraphTensor::elements() const {
  int64_t count = 1;
  for (int64_t size : dims)
    count *= size;
  return count;
}

int64_t GraphTensor::width() const {
  switch (type) {
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_BOOLEAN:
    return 1;
  default:
    return 4;
  }
}

namespace {

[[noreturn]] void fail(const std::string &what) { throw KernelFault(CUDA_ERROR_LAUNCH_FAILED, "cuDNN: " + what); }

using Index = std::vector<int64_t>;

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

/// The element of a smaller tensor that belongs to one of a tensor with `dims`.
int64_t broadcast(const GraphTensor &tensor, const Index &index, const std::vector<int64_t> &dims) {
  int64_t linear = 0;
  for (size_t dim = 0; dim < index.size(); ++dim) {
    if (dims[dim] % tensor.dims[dim] != 0)
      fail("shapes that do not fit");
    linear = linear * tensor.dims[dim] + index[dim] / (dims[dim] / tensor.dims[dim]);
  }
  return linear;
}

int64_t placeOf(const GraphTensor &tensor, const Index &index) {
  int64_t place = 0;
  for (size_t dim = 0; dim < index.size(); ++dim)
    place += index[dim] * tensor.strides[dim];
  return place;
}

float rounded(const GraphTensor &tensor, float value) {
  return tensor.type == CUDNN_DATA_BFLOAT16 ? Bf16::widen(Bf16::narrow(value))
         : tensor.type == CUDNN_DATA_HALF   ? F16::widen(F16::narrow(value))
                                            : value;
}

using Values = std::vector<float>; ///< of all elements, row-major

class Evaluator {
public:
  Evaluator(const Program &program, const std::map<int64_t, uint64_t> &pointers,
            const std::map<int64_t, float> &constants, const Gpu &gpu)
      : program(program), pointers(pointers), constants(constants), gpu(gpu) {}

  void run() {
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
      if (!output.isVirtual)
        store(output, made);
      known[output.id] = std::move(made);
    }
  }

private:
  const GraphTensor &tensor(int64_t id) const {
    auto found = program.tensors.find(id);
    if (found == program.tensors.end())
      fail("a tensor that is not described");
    return found->second;
  }

  std::byte *memory(const GraphTensor &tensor) const {
    auto pointer = pointers.find(tensor.id);
    if (pointer == pointers.end())
      fail("no pointer for tensor " + std::to_string(tensor.id));
    if (pointer->second % static_cast<uint64_t>(tensor.alignment) != 0)
      fail("tensor " + std::to_string(tensor.id) + " is not aligned to " + std::to_string(tensor.alignment));
    int64_t last = 0;
    for (size_t dim = 0; dim < tensor.dims.size(); ++dim)
      last += (tensor.dims[dim] - 1) * tensor.strides[dim];
    return gpu.resolve(pointer->second, static_cast<uint64_t>((last + 1) * tensor.width()), "cuDNN");
  }

  const Values &load(int64_t id) {
    if (auto found = known.find(id); found != known.end())
      return found->second;
    const GraphTensor &from = tensor(id);
    if (from.isVirtual)
      fail("a virtual tensor is read before it is written");
    Values &made = known[id];
    made.resize(static_cast<size_t>(from.elements()));
    if (from.isByValue) {
      if (!constants.count(id))
        fail("a value is missing");
      std::fill(made.begin(), made.end(), constants.at(id));
      return made;
    }
    const std::byte *data = memory(from);
    for (size_t element = 0; element < made.size(); ++element) {
      int64_t place = placeOf(from, indexOf(from, static_cast<int64_t>(element)));
      if (from.width() == 4)
        std::memcpy(&made[element], data + place * 4, 4);
      else {
        uint16_t bits = 0;
        std::memcpy(&bits, data + place * 2, 2);
        made[element] = from.type == CUDNN_DATA_BFLOAT16 ? Bf16::widen(bits) : F16::widen(bits);
      }
    }
    return made;
  }

  void store(const GraphTensor &to, const Values &values) const {
    std::byte *data = memory(to);
    for (size_t element = 0; element < values.size(); ++element) {
      int64_t place = placeOf(to, indexOf(to, static_cast<int64_t>(element)));
      if (to.width() == 4)
        std::memcpy(data + place * 4, &values[element], 4);
      else {
        uint16_t bits = to.type == CUDNN_DATA_BFLOAT16 ? Bf16::narrow(values[element]) : F16::narrow(values[element]);
        std::memcpy(data + place * 2, &bits, 2);
      }
    }
  }

  static float compute(cudnnPointwiseMode_t mode, float x, float b, float t) {
    switch (mode) {
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
    std::vector<const Values *> inputs;
    for (int64_t id : operation.inputs)
      inputs.push_back(operation.mode == CUDNN_POINTWISE_GEN_INDEX ? nullptr : &load(id));
    for (size_t element = 0; element < made.size(); ++element) {
      Index index = indexOf(output, static_cast<int64_t>(element));
      if (operation.mode == CUDNN_POINTWISE_GEN_INDEX) {
        made[element] = static_cast<float>(index.at(static_cast<size_t>(operation.axis)));
        continue;
      }
      float values[3] = {};
      for (size_t input = 0; input < inputs.size(); ++input)
        values[input] =
            (*inputs[input])[static_cast<size_t>(broadcast(tensor(operation.inputs[input]), index, output.dims))];
      made[element] = compute(operation.mode, values[0], values[1], values[2]);
    }
  }

  void reduce(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    bool isMax = operation.reduction == CUDNN_REDUCE_TENSOR_MAX;
    if (!isMax && operation.reduction != CUDNN_REDUCE_TENSOR_ADD)
      fail("a reduction that is not simulated");
    std::fill(made.begin(), made.end(), isMax ? -std::numeric_limits<float>::infinity() : 0.0F);
    const GraphTensor &input = tensor(operation.inputs[0]);
    const Values &values = load(operation.inputs[0]);
    for (size_t element = 0; element < values.size(); ++element) {
      float &to =
          made[static_cast<size_t>(broadcast(output, indexOf(input, static_cast<int64_t>(element)), input.dims))];
      to = isMax ? std::max(to, values[element]) : to + values[element];
    }
  }

  void multiply(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    const GraphTensor &a = tensor(operation.inputs[0]), &b = tensor(operation.inputs[1]);
    const Values &left = load(a.id), &right = load(b.id);
    size_t rank = output.dims.size();
    int64_t m = output.dims[rank - 2], n = output.dims[rank - 1], k = a.dims[rank - 1];
    if (a.dims[rank - 2] != m || b.dims[rank - 2] != k || b.dims[rank - 1] != n)
      fail("the shapes of a product do not fit");
    for (int64_t matrix = 0; matrix < static_cast<int64_t>(made.size()) / (m * n); ++matrix) {
      Index index = indexOf(output, matrix * m * n);
      std::vector<int64_t> outer = output.dims;
      auto baseOf = [&](const GraphTensor &one) {
        Index first = index;
        for (size_t dim = 0; dim + 2 < rank; ++dim) {
          if (outer[dim] % one.dims[dim] != 0)
            fail("the batches of a product do not fit");
          first[dim] /= outer[dim] / one.dims[dim];
        }
        return linearOf(one, first);
      };
      const float *x = left.data() + baseOf(a), *y = right.data() + baseOf(b);
      for (int64_t row = 0; row < m; ++row)
        for (int64_t inner = 0; inner < k; ++inner)
          for (int64_t column = 0; column < n; ++column)
            made[static_cast<size_t>((matrix * m + row) * n + column)] += x[row * k + inner] * y[inner * n + column];
    }
  }

  void reshape(const GraphOperation &operation, const GraphTensor &output, Values &made) {
    const GraphTensor &input = tensor(operation.inputs[0]);
    const Values &values = load(input.id);
    std::map<int64_t, float> places;
    for (size_t element = 0; element < values.size(); ++element)
      places[placeOf(input, indexOf(input, static_cast<int64_t>(element)))] = values[element];
    for (size_t element = 0; element < made.size(); ++element) {
      auto found = places.find(placeOf(output, indexOf(output, static_cast<int64_t>(element))));
      if (found == places.end())
        fail("a reshape reads what its input has not");
      made[element] = found->second;
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
  const std::map<int64_t, uint64_t> &pointers;
  const std::map<int64_t, float> &constants;
  const Gpu &gpu;
  std::map<int64_t, Values> known;
};

} // namespace

void evaluate(const Program &program, const std::map<int64_t, uint64_t> &pointers,
              const std::map<int64_t, float> &values, const Gpu &gpu) {
  Evaluator(program, pointers, values, gpu).run();
}

} // namespace tessera::sim
