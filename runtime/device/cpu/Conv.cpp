//===- Conv.cpp - 2-D convolution and its gradients by oneDNN --------------===//

#include "runtime/device/cpu/Conv.h"

#include "runtime/device/cpu/Dnn.h"

#include <string>
#include <unordered_map>

namespace tessera::cpu {
namespace {

using artifact::ConvKind;
using dnnl::memory;

/// An operand in the caller's layout, and where it differs, in the one that oneDNN computes in.
struct ConvOperand {
  memory::desc given, used;
  int argument = 0;
  size_t offset = 0; ///< in the scratch, if the layouts differ
  dnnl::reorder reorder;
  bool isReordered() const { return given != used; }
};

class OneDnnConvPlan : public ConvPlan {
public:
  OneDnnConvPlan(Scratch &scratch) : scratch(scratch) {}

  void create(const ConvShape &shape, const TensorView &x, const TensorView &w, const TensorView &y) {
    x_.given = describe(x, 1);
    w_.given = describe(w, shape.groups);
    y_.given = describe(y, 1);
    auto any = [](const ConvOperand &operand) {
      return memory::desc(operand.given.dims(), memory::data_type::f32, memory::format_tag::any);
    };
    memory::dims strides = shape.strides, dilations = {shape.dilations[0] - 1, shape.dilations[1] - 1},
                 before = {shape.padding[0], shape.padding[1]}, after = {shape.padding[2], shape.padding[3]};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    constexpr auto direct = dnnl::algorithm::convolution_direct;
    dnnl::convolution_forward::primitive_desc forward(
        dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, direct, any(x_), any(w_), any(y_), strides,
                                        dilations, before, after),
        attributes, dnnEngine());
    memory::desc work;
    kind = shape.kind;
    if (kind == ConvKind::Forward) {
      take({DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, forward.src_desc(), forward.weights_desc(),
           forward.dst_desc());
      primitive = dnnl::convolution_forward(forward);
      work = forward.scratchpad_desc();
    } else if (kind == ConvKind::InputGrad) {
      dnnl::convolution_backward_data::primitive_desc description(
          dnnl::convolution_backward_data::desc(direct, any(x_), any(w_), any(y_), strides, dilations, before, after),
          attributes, dnnEngine(), forward);
      take({DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST}, description.diff_src_desc(),
           description.weights_desc(), description.diff_dst_desc());
      primitive = dnnl::convolution_backward_data(description);
      work = description.scratchpad_desc();
    } else {
      dnnl::convolution_backward_weights::primitive_desc description(
          dnnl::convolution_backward_weights::desc(direct, any(x_), any(w_), any(y_), strides, dilations, before,
                                                   after),
          attributes, dnnEngine(), forward);
      take({DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}, description.src_desc(),
           description.diff_weights_desc(), description.diff_dst_desc());
      primitive = dnnl::convolution_backward_weights(description);
      work = description.scratchpad_desc();
    }
    scratchpad = memory(work, dnnEngine(), nullptr);
    scratchpadOffset = reserve(work.get_size());
    scratch.require(scratchBytes);
    stream = dnnl::stream(dnnEngine());
  }

  Status run(void *x, void *w, void *y) override {
    return guardDnn("convolution", [&] {
      std::unordered_map<int, memory> arguments;
      ConvOperand *operands[] = {&x_, &w_, &y_};
      void *addresses[] = {x, w, y};
      int output = kind == ConvKind::Forward ? 2 : kind == ConvKind::InputGrad ? 0 : 1;
      for (int index = 0; index < 3; ++index) {
        ConvOperand &operand = *operands[index];
        memory given(operand.given, dnnEngine(), addresses[index]);
        if (!operand.isReordered()) {
          arguments.emplace(operand.argument, given);
          continue;
        }
        memory used(operand.used, dnnEngine(), at(operand.offset));
        if (index != output)
          operand.reorder.execute(stream, given, used);
        arguments.emplace(operand.argument, used);
      }
      scratchpad.set_data_handle(at(scratchpadOffset));
      arguments.emplace(DNNL_ARG_SCRATCHPAD, scratchpad);
      primitive.execute(stream, arguments);
      ConvOperand &result = *operands[output];
      if (result.isReordered()) {
        memory used(result.used, dnnEngine(), at(result.offset)), given(result.given, dnnEngine(), addresses[output]);
        result.reorder.execute(stream, used, given);
      }
    });
  }

private:
  static memory::desc describe(const TensorView &view, int64_t groups) {
    memory::dims dims = view.shape, strides = view.strides;
    if (groups > 1) { // OIHW -> GOIHW
      dims[0] /= groups;
      dims.insert(dims.begin(), groups);
      strides.insert(strides.begin(), strides[0] * dims[1]);
    }
    return memory::desc(dims, memory::data_type::f32, strides);
  }

  void take(const int (&arguments)[3], memory::desc x, memory::desc w, memory::desc y) {
    ConvOperand *operands[] = {&x_, &w_, &y_};
    const memory::desc used[] = {x, w, y};
    int output = kind == ConvKind::Forward ? 2 : kind == ConvKind::InputGrad ? 0 : 1;
    for (int index = 0; index < 3; ++index) {
      ConvOperand &operand = *operands[index];
      operand.argument = arguments[index];
      operand.used = used[index];
      if (!operand.isReordered())
        continue;
      operand.offset = reserve(operand.used.get_size());
      const memory::desc &from = index == output ? operand.used : operand.given,
                         &to = index == output ? operand.given : operand.used;
      operand.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(dnnEngine(), from, dnnEngine(), to));
    }
  }

  size_t reserve(size_t bytes) {
    size_t offset = scratchBytes;
    scratchBytes += (bytes + 63) / 64 * 64;
    return offset;
  }
  void *at(size_t offset) const { return static_cast<std::byte *>(scratch.data()) + offset; }

  Scratch &scratch;
  ConvKind kind = ConvKind::Forward;
  ConvOperand x_, w_, y_;
  dnnl::primitive primitive;
  dnnl::stream stream;
  memory scratchpad;
  size_t scratchpadOffset = 0, scratchBytes = 0;
};

} // namespace

struct ConvPlanner::Impl {
  Scratch scratch;
};

ConvPlanner::ConvPlanner() : impl(std::make_unique<Impl>()) {}
ConvPlanner::~ConvPlanner() = default;
size_t ConvPlanner::workspaceBytes() const { return impl->scratch.bytes(); }

Result<std::shared_ptr<ConvPlan>> ConvPlanner::plan(const ConvShape &shape, const TensorView &x, const TensorView &w,
                                                    const TensorView &y) {
  auto plan = std::make_shared<OneDnnConvPlan>(impl->scratch);
  TESSERA_RETURN_IF_ERROR(guardDnn("convolution", [&] { plan->create(shape, x, w, y); }));
  return std::shared_ptr<ConvPlan>(std::move(plan));
}

} // namespace tessera::cpu
