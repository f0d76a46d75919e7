//===- CudnnReader.cpp - a graph of operations from cuDNN's descriptors ----------===//

#include "CudnnDescriptor.h"

#include <algorithm>
#include <array>

namespace tessera::sim {
namespace {

using Kind = GraphOperation::Kind;

/// How many inputs a pointwise operation has; the index is of its input's shape.
size_t inputsOf(cudnnPointwiseMode_t mode) {
  switch (mode) {
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_EXP:
  case CUDNN_POINTWISE_LOG:
  case CUDNN_POINTWISE_GEN_INDEX:
    return 1;
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_CMP_GE:
    return 2;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return 3;
  default:
    lack("pointwise mode " + std::to_string(mode));
  }
}

class Reader {
public:
  explicit Reader(const Descriptors &all) : all(all) {}

  Program read(const Descriptor &graph) {
    for (void *operation : graph.list<void *>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
      program.operations.push_back(operationOf(*all.at(operation)));
    sort();
    return std::move(program);
  }

private:
  const Descriptor &part(const Descriptor &of, int attribute) { return *all.at(of.get<void *>(attribute)); }

  int64_t tensor(const Descriptor &of, int attribute) {
    const Descriptor &from = part(of, attribute);
    if (from.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      refuse("an operand of an operation is not a tensor");
    GraphTensor read;
    read.id = from.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    read.type = from.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    read.dims = from.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    read.strides = from.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    read.alignment = from.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    read.isVirtual = from.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    read.isByValue = from.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    auto [known, isNew] = program.tensors.try_emplace(read.id, read);
    if (!isNew && !(known->second == read))
      refuse("tensor " + std::to_string(read.id) + " is described in two ways");
    return read.id;
  }
  const GraphTensor &at(int64_t id) const { return program.tensors.at(id); }
  const std::vector<int64_t> &dims(int64_t id) const { return at(id).dims; }

  static void requireFloat(const Descriptor &how, int attribute) {
    if (how.get<cudnnDataType_t>(attribute) != CUDNN_DATA_FLOAT)
      lack("computing in another type than f32");
  }

  GraphOperation operationOf(const Descriptor &from) {
    GraphOperation made{Kind::Pointwise, {}, {}, -1, {}, 0, {}, {}, {}, {}};
    switch (from.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      pointwise(from, made);
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      reduction(from, made);
      break;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      product(from, made);
      break;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      made.kind = Kind::Reshape;
      made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)};
      made.output = tensor(from, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
      require(at(made.inputs[0]).elements() == at(made.output).elements(), "a reshape changes the number of elements");
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      convolution(from, made, Kind::Convolve,
                  {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      convolution(from, made, Kind::ConvolveInputGrad,
                  {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA});
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      convolution(from, made, Kind::ConvolveWeightGrad,
                  {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});
      break;
    default:
      lack("an operation of type " + std::to_string(from.type));
    }
    if (at(made.output).isByValue)
      refuse("an operation writes a value");
    return made;
  }

  void pointwise(const Descriptor &from, GraphOperation &made) {
    const Descriptor &how = part(from, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    made.mode = how.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    made.axis = how.get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
    made.output = tensor(from, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    const std::vector<int> names = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                    CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    size_t count = inputsOf(made.mode);
    for (size_t input = 0; input < names.size(); ++input) {
      require(from.values.count(names[input]) == (input < count ? 1 : 0),
              "a pointwise operation has not the operands of its mode");
      if (input < count)
        made.inputs.push_back(tensor(from, names[input]));
    }
    const auto &result = dims(made.output);
    for (int64_t id : made.inputs) {
      require(dims(id).size() == result.size(), "operands of a pointwise operation have other ranks");
      for (size_t dim = 0; dim < result.size(); ++dim)
        require(dims(id)[dim] == result[dim] || dims(id)[dim] == 1, "a pointwise operand cannot be broadcast");
    }
    bool compares = made.mode == CUDNN_POINTWISE_CMP_GE, isIndex = made.mode == CUDNN_POINTWISE_GEN_INDEX;
    require(!isIndex || (made.axis >= 0 && made.axis < static_cast<int64_t>(result.size())),
            "an index of no dimension");
    require(compares == (at(made.output).type == CUDNN_DATA_BOOLEAN), "a result is not boolean, or is no comparison's");
    require(isIndex || at(made.output).type != CUDNN_DATA_INT32, "an integer is no index");
    require(made.mode != CUDNN_POINTWISE_BINARY_SELECT || at(made.inputs[2]).type == CUDNN_DATA_BOOLEAN,
            "what selects is not boolean");
    if (!compares)
      requireFloat(how, CUDNN_ATTR_POINTWISE_MATH_PREC);
  }

  void reduction(const Descriptor &from, GraphOperation &made) {
    const Descriptor &how = part(from, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    made.kind = Kind::Reduce;
    made.reduction = how.get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    if (made.reduction != CUDNN_REDUCE_TENSOR_MAX && made.reduction != CUDNN_REDUCE_TENSOR_ADD)
      lack("reduction " + std::to_string(made.reduction));
    requireFloat(how, CUDNN_ATTR_REDUCTION_COMP_TYPE);
    made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_REDUCTION_XDESC)};
    made.output = tensor(from, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const auto &all = dims(made.inputs[0]), &result = dims(made.output);
    require(all.size() == result.size(), "a reduction changes the rank");
    for (size_t dim = 0; dim < result.size(); ++dim)
      require(all[dim] % result[dim] == 0, "a reduction's result does not fit");
  }

  void product(const Descriptor &from, GraphOperation &made) {
    made.kind = Kind::Multiply;
    requireFloat(part(from, CUDNN_ATTR_OPERATION_MATMUL_DESC), CUDNN_ATTR_MATMUL_COMP_TYPE);
    made.inputs = {tensor(from, CUDNN_ATTR_OPERATION_MATMUL_ADESC), tensor(from, CUDNN_ATTR_OPERATION_MATMUL_BDESC)};
    made.output = tensor(from, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    const auto &a = dims(made.inputs[0]), &b = dims(made.inputs[1]), &c = dims(made.output);
    size_t rank = c.size();
    require(rank >= 3 && a.size() == rank && b.size() == rank, "operands of a product have other ranks");
    require(a[rank - 1] == b[rank - 2] && a[rank - 2] == c[rank - 2] && b[rank - 1] == c[rank - 1],
            "the shapes of a product do not fit");
    for (size_t dim = 0; dim + 2 < rank; ++dim)
      require(c[dim] == std::max(a[dim], b[dim]) && c[dim] % a[dim] == 0 && c[dim] % b[dim] == 0,
              "the batches of a product do not fit");
  }

  /// `names`: the convolution, x, w, y (or their gradients), alpha and beta.
  void convolution(const Descriptor &from, GraphOperation &made, Kind kind, const std::array<int, 6> &names) {
    const Descriptor &how = part(from, names[0]);
    requireFloat(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    if (from.get<float>(names[4]) != 1 || from.get<float>(names[5]) != 0)
      lack("a convolution that is scaled or added");
    made.kind = kind;
    made.strides = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    made.dilations = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    made.before = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    made.after = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    int64_t x = tensor(from, names[1]), w = tensor(from, names[2]), y = tensor(from, names[3]);
    made.output = kind == Kind::Convolve ? y : kind == Kind::ConvolveInputGrad ? x : w;
    made.inputs = kind == Kind::Convolve            ? std::vector<int64_t>{x, w}
                  : kind == Kind::ConvolveInputGrad ? std::vector<int64_t>{y, w}
                                                    : std::vector<int64_t>{x, y};
    const auto &image = dims(x), &filter = dims(w), &result = dims(y);
    require(image.size() == 4 && filter.size() == 4 && result.size() == 4, "a convolution's operands have other ranks");
    require(image[0] == result[0] && filter[0] == result[1] && image[1] % filter[1] == 0 &&
                filter[0] % (image[1] / filter[1]) == 0,
            "a convolution's channels do not fit");
    for (size_t dim = 0; dim < 2; ++dim) {
      int64_t room =
          image[dim + 2] + made.before[dim] + made.after[dim] - made.dilations[dim] * (filter[dim + 2] - 1) - 1;
      require(room >= 0 && result[dim + 2] == room / made.strides[dim] + 1, "a convolution's sizes do not fit");
    }
  }

  /// Operations come after what they read; each tensor is written once at most, and what is virtual is written and
  /// read.
  void sort() {
    std::map<int64_t, size_t> writers;
    std::set<int64_t> reads;
    for (size_t index = 0; index < program.operations.size(); ++index) {
      require(writers.emplace(program.operations[index].output, index).second, "a tensor is written twice");
      reads.insert(program.operations[index].inputs.begin(), program.operations[index].inputs.end());
    }
    for (const auto &[id, one] : program.tensors)
      require(!one.isVirtual || (writers.count(id) && reads.count(id)), "a virtual tensor is not written, or not read");
    std::vector<GraphOperation> sorted;
    std::vector<bool> isDone(program.operations.size());
    while (sorted.size() < program.operations.size()) {
      size_t before = sorted.size();
      for (size_t index = 0; index < program.operations.size(); ++index) {
        const GraphOperation &one = program.operations[index];
        if (isDone[index] || !std::all_of(one.inputs.begin(), one.inputs.end(),
                                          [&](int64_t id) { return !writers.count(id) || isDone[writers.at(id)]; }))
          continue;
        sorted.push_back(one);
        isDone[index] = true;
      }
      require(sorted.size() > before, "operations wait for each other");
    }
    program.operations = std::move(sorted);
  }

  const Descriptors &all;
  Program program;
};

} // namespace

Program readGraph(const Descriptor &graph, const Descriptors &all) { return Reader(all).read(graph); }

} // namespace tessera::sim
