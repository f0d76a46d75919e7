//===- VerifyInstructions.cpp - checks instructions and their operands -----===//

#include "runtime/artifact/Scales.h"
#include "runtime/artifact/VerifyContext.h"

#include <algorithm>
#include <limits>
#include <map>

namespace tessera {
namespace {

using artifact::CollectiveKind;
using artifact::ConvKind;
using artifact::DataType;
using artifact::Operation;
using artifact::ReductionKind;
using Shape = std::vector<int64_t>;

class InstructionVerifier {
public:
  InstructionVerifier(const VerifyContext &context, const artifact::Program &program)
      : context(context), program(program) {}

  Status verifyList(const flatbuffers::Vector<flatbuffers::Offset<artifact::Instruction>> &list) {
    for (const artifact::Instruction *instruction : list) {
      what = "instruction " + std::to_string(number);
      if (number == std::numeric_limits<uint32_t>::max())
        return bad("too many instructions");
      ++number;
      const auto *locations = context.package.locations();
      if (sizeOf(locations) > 0 && instruction->location() >= locations->size())
        return bad("location " + std::to_string(instruction->location()) + " of " + std::to_string(locations->size()));
      if (sizeOf(locations) > 0 && locations->Get(instruction->location())->size() > 0)
        what += " (node " + locations->Get(instruction->location())->str() + ")";
      TESSERA_RETURN_IF_ERROR(verifyStream(*instruction));
      if (instruction->operation_type() == Operation::Repeat) {
        TESSERA_RETURN_IF_ERROR(repeat(*instruction->operation_as_Repeat()));
      } else {
        TESSERA_RETURN_IF_ERROR(verifyOne(*instruction));
      }
    }
    return Status::ok();
  }

  uint32_t number = 0;

private:
  Status bad(const std::string &why) const { return TESSERA_ERROR(DataLoss, what + ": " + why); }

  Status verifyStream(const artifact::Instruction &instruction) const {
    uint32_t streams = std::max(sizeOf(context.package.streams()), 1u);
    if (instruction.stream() >= streams)
      return bad("stream " + std::to_string(instruction.stream()) + " of " + std::to_string(streams));
    switch (instruction.operation_type()) {
    case Operation::Launch:
    case Operation::Gemm:
    case Operation::Conv:
    case Operation::Attention:
    case Operation::AttentionGrad:
    case Operation::Repeat:
      if (instruction.stream() != 0)
        return bad(std::string(artifact::EnumNameOperation(instruction.operation_type())) +
                   " must be on the compute stream, is on stream " + std::to_string(instruction.stream()));
      return Status::ok();
    default:
      return Status::ok();
    }
  }

  Status repeat(const artifact::Repeat &loop) {
    if (loop.count() < 1 || loop.count() > maxIterations)
      return bad("repeats " + std::to_string(loop.count()) + " times");
    if (loops.size() == artifact::maxRepeatDepth)
      return bad("more than " + std::to_string(artifact::maxRepeatDepth) + " repeats inside each other");
    int64_t inAll = loop.count();
    for (int64_t count : loops)
      if ((inAll *= count) > maxIterations)
        return bad("repeats too often with the loops around it");
    if (!loop.body())
      return Status::ok();
    loops.push_back(loop.count());
    TESSERA_RETURN_IF_ERROR(verifyList(*loop.body()));
    loops.pop_back();
    return Status::ok();
  }

  Status verifyOne(const artifact::Instruction &instruction) {
    switch (instruction.operation_type()) {
    case Operation::Launch:
      return launch(*instruction.operation_as_Launch());
    case Operation::Gemm:
      return gemm(*instruction.operation_as_Gemm());
    case Operation::Conv:
      return conv(*instruction.operation_as_Conv());
    case Operation::Attention:
      return attention(*instruction.operation_as_Attention());
    case Operation::AttentionGrad:
      return attentionGrad(*instruction.operation_as_AttentionGrad());
    case Operation::Collective:
      return collective(*instruction.operation_as_Collective());
    case Operation::Copy:
      return copy(*instruction.operation_as_Copy());
    case Operation::Fill:
      return fill(*instruction.operation_as_Fill());
    case Operation::AxisIndex:
      return axisIndex(*instruction.operation_as_AxisIndex());
    case Operation::Record:
      return record(instruction.operation_as_Record()->event(), instruction.stream());
    case Operation::Wait:
      return event(instruction.operation_as_Wait()->event());
    default:
      return bad("unknown operation " + std::to_string(static_cast<int>(instruction.operation_type())));
    }
  }

  Result<TensorView> operand(uint32_t buffer, const char *name) const {
    TESSERA_RETURN_IF_ERROR(context.useBuffer(buffer, what + ", operand " + name, loops));
    return context.view(buffer);
  }
  /// An operand of a library call: f32, of this many dimensions.
  Result<TensorView> floats(uint32_t buffer, const char *name, size_t rank = 0) const {
    TESSERA_ASSIGN_OR_RETURN(TensorView view, operand(buffer, name));
    if (view.dtype != DataType::F32)
      return TESSERA_ERROR(Unsupported, what + ", operand " + name + ": type " +
                                            artifact::EnumNameDataType(view.dtype) + ", the CPU computes in F32");
    return ranked(std::move(view), name, rank);
  }
  /// The same, or bf16.
  Result<TensorView> narrowOrWide(uint32_t buffer, const char *name, size_t rank = 0) const {
    TESSERA_RETURN_IF_ERROR(context.useBuffer(buffer, what + ", operand " + name, loops));
    return context.view(buffer).dtype == DataType::BF16 ? ranked(context.view(buffer), name, rank)
                                                        : floats(buffer, name, rank);
  }
  /// Of a product, whose operands may have 8 bits.
  Result<TensorView> factor(uint32_t buffer, const char *name) const {
    TESSERA_RETURN_IF_ERROR(context.useBuffer(buffer, what + ", operand " + name, loops));
    return isFloat8(context.view(buffer).dtype) ? context.view(buffer) : narrowOrWide(buffer, name);
  }
  Result<TensorView> ranked(TensorView view, const char *name, size_t rank) const {
    if (rank != 0 && view.shape.size() != rank)
      return bad(std::string("operand ") + name + " has " + std::to_string(view.shape.size()) +
                 " dimensions, expected " + std::to_string(rank));
    return view;
  }
  Status expectType(const TensorView &view, DataType dtype, const char *name) const {
    if (view.dtype != dtype)
      return bad(std::string("operand ") + name + " is of type " + artifact::EnumNameDataType(view.dtype) +
                 ", expected " + artifact::EnumNameDataType(dtype));
    return Status::ok();
  }
  /// A result of the type of what it is computed of, or of the one in which it is added up.
  Status expectOwnOrWide(const TensorView &view, DataType own, const char *name) const {
    return view.dtype == DataType::F32 ? Status::ok() : expectType(view, own, name);
  }
  Status expectShape(const TensorView &view, const Shape &shape, const char *name) const {
    if (view.shape != shape)
      return bad(std::string("operand ") + name + " has shape " + toString(view.shape) + ", expected " +
                 toString(shape));
    return Status::ok();
  }
  /// A result must not have two indices for one element.
  Status expectWritable(const TensorView &view, const char *name) const {
    for (size_t dim = 0; dim < view.shape.size(); ++dim)
      if (view.shape[dim] != 1 && view.strides[dim] == 0)
        return bad(std::string("result ") + name + " has stride 0 in dimension " + std::to_string(dim));
    return Status::ok();
  }

  Status launch(const artifact::Launch &launch) {
    if (launch.kernel() >= sizeOf(context.package.kernels()))
      return bad("kernel " + std::to_string(launch.kernel()) + " of " +
                 std::to_string(sizeOf(context.package.kernels())));
    if (launch.extent() < 0 || launch.extent() > maxElements || launch.grain() < 1 || launch.grain() > maxElements)
      return bad("extent " + std::to_string(launch.extent()) + ", grain " + std::to_string(launch.grain()));
    for (uint32_t index = 0; index < sizeOf(launch.buffers()); ++index)
      TESSERA_RETURN_IF_ERROR(operand(launch.buffers()->Get(index), std::to_string(index).c_str()).status());
    return Status::ok();
  }

  Status gemm(const artifact::Gemm &gemm) {
    TESSERA_ASSIGN_OR_RETURN(TensorView a, factor(gemm.a(), "a"));
    TESSERA_ASSIGN_OR_RETURN(TensorView b, factor(gemm.b(), "b"));
    TESSERA_ASSIGN_OR_RETURN(TensorView c, narrowOrWide(gemm.c(), "c"));
    if (!isFloat8(a.dtype)) {
      TESSERA_RETURN_IF_ERROR(expectType(b, a.dtype, "b"));
      if (c.dtype != DataType::F32)
        TESSERA_RETURN_IF_ERROR(expectType(c, a.dtype, "c"));
    }
    size_t rank = c.shape.size();
    if (rank < 2 || a.shape.size() != rank || b.shape.size() != rank)
      return bad("operands of " + std::to_string(a.shape.size()) + ", " + std::to_string(b.shape.size()) + " and " +
                 std::to_string(rank) + " dimensions");
    bool fits = a.shape[rank - 2] == c.shape[rank - 2] && b.shape[rank - 1] == c.shape[rank - 1] &&
                a.shape[rank - 1] == b.shape[rank - 2];
    for (size_t dim = 0; dim + 2 < rank; ++dim)
      for (int64_t size : {a.shape[dim], b.shape[dim]})
        fits = fits && (size == c.shape[dim] || size == 1);
    if (!fits)
      return bad("product of " + toString(a.shape) + " and " + toString(b.shape) + " into " + toString(c.shape));
    TESSERA_RETURN_IF_ERROR(expectWritable(c, "c"));
    TESSERA_RETURN_IF_ERROR(verifyScales(context, gemm, what, loops));
    return verifyEpilogue(context, gemm, what, loops);
  }

  Status conv(const artifact::Conv &conv) {
    if (conv.kind() < ConvKind::MIN || conv.kind() > ConvKind::MAX)
      return bad("unknown kind of convolution");
    TESSERA_ASSIGN_OR_RETURN(TensorView x, floats(conv.x(), "x", 4));
    TESSERA_ASSIGN_OR_RETURN(TensorView w, floats(conv.w(), "w", 4));
    TESSERA_ASSIGN_OR_RETURN(TensorView y, floats(conv.y(), "y", 4));
    if (sizeOf(conv.strides()) != 2 || sizeOf(conv.padding()) != 4 || sizeOf(conv.dilations()) != 2)
      return bad("expected 2 strides, 4 paddings and 2 dilations");
    if (!isAligned(conv.strides()) || !isAligned(conv.padding()) || !isAligned(conv.dilations()))
      return bad("misaligned strides, paddings or dilations");
    constexpr int64_t most = 1 << 20;
    for (uint32_t dim = 0; dim < 2; ++dim) {
      int64_t stride = conv.strides()->Get(dim), dilation = conv.dilations()->Get(dim),
              before = conv.padding()->Get(dim), after = conv.padding()->Get(dim + 2);
      if (stride < 1 || stride > most || dilation < 1 || dilation > most || before < 0 || before > most || after < 0 ||
          after > most)
        return bad("stride, dilation or padding out of range");
      WideInt window = WideInt(w.shape[2 + dim] - 1) * dilation + 1, room = WideInt(x.shape[2 + dim]) + before + after;
      if (room < window || (room - window) / stride + 1 != y.shape[2 + dim])
        return bad("convolution of " + toString(x.shape) + " with " + toString(w.shape) + " into " + toString(y.shape));
    }
    int64_t groups = conv.groups();
    if (groups < 1 || x.shape[1] % groups != 0 || y.shape[1] % groups != 0 || w.shape[1] != x.shape[1] / groups ||
        w.shape[0] != y.shape[1] || x.shape[0] != y.shape[0])
      return bad("convolution of " + toString(x.shape) + " with " + toString(w.shape) + " into " + toString(y.shape) +
                 " in " + std::to_string(groups) + " groups");
    for (const TensorView *view : {&x, &w, &y})
      TESSERA_RETURN_IF_ERROR(expectWritable(*view, "x, w or y"));
    return Status::ok();
  }

  template <typename Table> Status attentionForward(const Table &table) {
    TESSERA_ASSIGN_OR_RETURN(TensorView q, narrowOrWide(table.q(), "q", 4));
    TESSERA_ASSIGN_OR_RETURN(TensorView k, narrowOrWide(table.k(), "k", 4));
    TESSERA_ASSIGN_OR_RETURN(TensorView v, narrowOrWide(table.v(), "v", 4));
    TESSERA_ASSIGN_OR_RETURN(TensorView out, narrowOrWide(table.out(), "out", 4));
    TESSERA_ASSIGN_OR_RETURN(TensorView lse, floats(table.lse(), "lse", 3));
    TESSERA_RETURN_IF_ERROR(expectType(k, q.dtype, "k"));
    TESSERA_RETURN_IF_ERROR(expectType(v, q.dtype, "v"));
    TESSERA_RETURN_IF_ERROR(expectOwnOrWide(out, q.dtype, "out"));
    if (q.shape[1] % k.shape[1] != 0)
      return bad(std::to_string(q.shape[1]) + " heads in " + std::to_string(k.shape[1]) + " groups");
    if (std::max({q.shape[3], v.shape[3]}) > 4096)
      return TESSERA_ERROR(Unsupported, what + ": heads larger than 4096");
    TESSERA_RETURN_IF_ERROR(expectShape(k, {q.shape[0], k.shape[1], k.shape[2], q.shape[3]}, "k"));
    TESSERA_RETURN_IF_ERROR(expectShape(v, {q.shape[0], k.shape[1], k.shape[2], v.shape[3]}, "v"));
    TESSERA_RETURN_IF_ERROR(expectShape(out, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}, "out"));
    TESSERA_RETURN_IF_ERROR(expectShape(lse, {q.shape[0], q.shape[1], q.shape[2]}, "lse"));
    TESSERA_RETURN_IF_ERROR(expectWritable(out, "out"));
    TESSERA_RETURN_IF_ERROR(expectWritable(lse, "lse"));
    if (table.window() < 0 || (table.window() > 0 && !table.causal()))
      return bad("a window of " + std::to_string(table.window()) + " keys, expected 0, or more beside causal");
    if ((table.begin() < 0) != (table.end() < 0))
      return bad("one end of the keys that are seen, expected both or none");
    if (table.begin() >= 0)
      for (int32_t bound : {table.begin(), table.end()}) {
        TESSERA_ASSIGN_OR_RETURN(TensorView view, operand(static_cast<uint32_t>(bound), "begin or end"));
        TESSERA_RETURN_IF_ERROR(expectType(view, DataType::I64, "begin or end"));
        if (view.shape.size() != 2 || (view.shape[0] != 1 && view.shape[0] != q.shape[0]) ||
            view.shape[1] != q.shape[2] || !view.isContiguous())
          return bad("begin or end of shape " + toString(view.shape) + " for a query " + toString(q.shape));
      }
    if (table.mask() < 0)
      return Status::ok();
    TESSERA_ASSIGN_OR_RETURN(TensorView mask, operand(static_cast<uint32_t>(table.mask()), "mask"));
    if (mask.dtype != DataType::Bool && mask.dtype != DataType::F32)
      return bad(std::string("mask of type ") + artifact::EnumNameDataType(mask.dtype));
    Shape full = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    bool fits = mask.shape.size() == 4 && mask.shape[3] == full[3];
    for (size_t dim = 0; fits && dim < 3; ++dim)
      fits = mask.shape[dim] == full[dim] || mask.shape[dim] == 1;
    return fits ? Status::ok() : bad("mask of shape " + toString(mask.shape) + " for scores " + toString(full));
  }

  Status attention(const artifact::Attention &table) { return attentionForward(table); }

  Status attentionGrad(const artifact::AttentionGrad &table) {
    TESSERA_RETURN_IF_ERROR(attentionForward(table));
    struct Pair {
      uint32_t buffer, like;
      const char *name;
    };
    for (const Pair &pair : {Pair{table.dout(), table.out(), "dout"}, Pair{table.dq(), table.q(), "dq"},
                             Pair{table.dk(), table.k(), "dk"}, Pair{table.dv(), table.v(), "dv"}}) {
      TESSERA_ASSIGN_OR_RETURN(TensorView view, narrowOrWide(pair.buffer, pair.name, 4));
      const DataType own = context.view(table.q()).dtype;
      TESSERA_RETURN_IF_ERROR(pair.buffer == table.dout() ? expectType(view, own, pair.name)
                                                          : expectOwnOrWide(view, own, pair.name));
      TESSERA_RETURN_IF_ERROR(expectShape(view, context.view(pair.like).shape, pair.name));
      TESSERA_RETURN_IF_ERROR(expectWritable(view, pair.name));
    }
    if (table.workspace() < 0)
      return Status::ok();
    TESSERA_ASSIGN_OR_RETURN(TensorView workspace, floats(static_cast<uint32_t>(table.workspace()), "workspace", 4));
    const Shape rows = context.view(table.lse()).shape;
    TESSERA_RETURN_IF_ERROR(expectShape(workspace, {2, rows[0], rows[1], rows[2]}, "workspace"));
    return workspace.isContiguous() ? Status::ok() : bad("workspace is not contiguous");
  }

  Status collective(const artifact::Collective &table) {
    if (table.kind() < CollectiveKind::MIN || table.kind() > CollectiveKind::MAX)
      return bad("unknown kind of collective");
    if (table.reduction() < ReductionKind::MIN || table.reduction() > ReductionKind::MAX)
      return bad("unknown kind of reduction");
    if (table.reduction() != ReductionKind::Sum && table.kind() != CollectiveKind::AllReduce &&
        table.kind() != CollectiveKind::ReduceScatter)
      return bad(std::string(artifact::EnumNameCollectiveKind(table.kind())) + " with a reduction");
    if (table.group() >= sizeOf(context.package.groups()))
      return bad("group " + std::to_string(table.group()) + " of " + std::to_string(sizeOf(context.package.groups())));
    TESSERA_ASSIGN_OR_RETURN(TensorView input, operand(table.input(), "input"));
    TESSERA_ASSIGN_OR_RETURN(TensorView output, operand(table.output(), "output"));
    if (input.dtype != output.dtype)
      return bad("input and output of different types");
    if (!input.isContiguous() || !output.isContiguous())
      return bad("input and output must be contiguous");
    WideInt size = context.groupSize(table.group()), in = input.numElements(), out = output.numElements();
    bool fits = in == out;
    if (table.kind() == CollectiveKind::AllGather)
      fits = out == in * size;
    else if (table.kind() == CollectiveKind::ReduceScatter)
      fits = in == out * size;
    else if (table.kind() == CollectiveKind::AllToAll)
      fits = fits && in % size == 0;
    if (!fits)
      return bad(std::string(artifact::EnumNameCollectiveKind(table.kind())) + " of " + toString(input.shape) +
                 " into " + toString(output.shape) + " over " + std::to_string(static_cast<int64_t>(size)) + " ranks");
    return disjoint(table, input, output);
  }

  /// Ranks read each other's inputs while they write their outputs: the two may be one buffer only in an all_reduce.
  Status disjoint(const artifact::Collective &table, const TensorView &input, const TensorView &output) const {
    const artifact::Buffer &from = *context.package.buffers()->Get(table.input()),
                           &to = *context.package.buffers()->Get(table.output());
    if (from.arena() != to.arena())
      return Status::ok();
    bool movesAlike = stridesOf(from) == stridesOf(to);
    bool isSame = from.offset() == to.offset() && from.rank_stride() == to.rank_stride() &&
                  from.rank_group() == to.rank_group() && movesAlike;
    if (isSame && (table.kind() == CollectiveKind::AllReduce || context.groupSize(table.group()) == 1))
      return Status::ok();
    int64_t fromLast = context.groupSize(from.rank_group()) - 1, toLast = context.groupSize(to.rank_group()) - 1;
    // Both move with the iteration; if by the same amount, one iteration stands for all.
    LoopCounts moving = movesAlike ? LoopCounts() : LoopCounts(loops);
    WideInt fromEnd = WideInt(from.offset()) + input.bytes() + WideInt(fromLast) * from.rank_stride() +
                      iterationBytes(from, moving),
            toEnd =
                WideInt(to.offset()) + output.bytes() + WideInt(toLast) * to.rank_stride() + iterationBytes(to, moving);
    if (WideInt(from.offset()) < toEnd && WideInt(to.offset()) < fromEnd)
      return bad("input and output of a collective overlap");
    return Status::ok();
  }

  /// Between iterations, of as many loops as can be.
  static std::vector<int64_t> stridesOf(const artifact::Buffer &buffer) {
    std::vector<int64_t> strides;
    if (buffer.iteration_strides())
      strides.assign(buffer.iteration_strides()->begin(), buffer.iteration_strides()->end());
    strides.resize(artifact::maxRepeatDepth);
    return strides;
  }

  Status copy(const artifact::Copy &copy) {
    TESSERA_ASSIGN_OR_RETURN(TensorView source, operand(copy.source(), "source"));
    TESSERA_ASSIGN_OR_RETURN(TensorView target, operand(copy.target(), "target"));
    if (source.dtype != target.dtype || source.shape != target.shape)
      return bad("copy of " + toString(source.shape) + " to " + toString(target.shape));
    return expectWritable(target, "target");
  }

  Status fill(const artifact::Fill &fill) {
    TESSERA_ASSIGN_OR_RETURN(TensorView target, operand(fill.target(), "target"));
    bool isNarrow = target.dtype == DataType::F16 || isFloat8(target.dtype) || target.dtype == DataType::F8E8M0FNU;
    if (isNarrow && fill.value() != 0)
      return TESSERA_ERROR(Unsupported, what + ": fill of type " + artifact::EnumNameDataType(target.dtype) +
                                            " with another value than 0");
    bool isInteger = target.dtype == DataType::I8 || target.dtype == DataType::I32 || target.dtype == DataType::I64 ||
                     target.dtype == DataType::U8;
    double limit = target.dtype == DataType::I64 ? 9.2e18 : target.dtype == DataType::I32 ? 2147483647.0 : 127.0;
    if (isInteger && !(fill.value() >= -limit && fill.value() <= limit))
      return bad("fill of type " + std::string(artifact::EnumNameDataType(target.dtype)) + " with " +
                 std::to_string(fill.value()));
    return expectWritable(target, "target");
  }

  Status axisIndex(const artifact::AxisIndex &index) {
    if (index.group() >= sizeOf(context.package.groups()))
      return bad("group " + std::to_string(index.group()) + " of " + std::to_string(sizeOf(context.package.groups())));
    TESSERA_ASSIGN_OR_RETURN(TensorView target, operand(index.target(), "target"));
    if (target.dtype != DataType::I64 || target.numElements() != 1)
      return bad("the target of an axis index is one I64");
    return Status::ok();
  }

  Status event(uint32_t event) const {
    if (event >= program.num_events())
      return bad("event " + std::to_string(event) + " of " + std::to_string(program.num_events()));
    return Status::ok();
  }

  Status record(uint32_t index, uint32_t stream) {
    TESSERA_RETURN_IF_ERROR(event(index));
    auto [known, isNew] = recordStream.emplace(index, stream);
    if (!isNew && known->second != stream)
      return bad("event " + std::to_string(index) + " is recorded on two streams");
    return Status::ok();
  }

  const VerifyContext &context;
  const artifact::Program &program;
  std::string what;
  std::vector<int64_t> loops; ///< counts of those around the instruction, outermost first
  std::map<uint32_t, uint32_t> recordStream;
};

} // namespace

Result<uint32_t> verifyInstructions(const VerifyContext &context, const artifact::Program &program) {
  constexpr uint32_t maxEvents = 1u << 22;
  if (program.num_events() > maxEvents)
    return TESSERA_ERROR(DataLoss, std::to_string(program.num_events()) + " events");
  InstructionVerifier verifier(context, program);
  if (program.instructions())
    TESSERA_RETURN_IF_ERROR(verifier.verifyList(*program.instructions()));
  return verifier.number;
}

} // namespace tessera
