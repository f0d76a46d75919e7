//===- InstructionTables.cpp - programs, memory and instructions --------------===//
//
// See Tables.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/Tables.h"
#include "compiler/dialect/train/Program.h"
#include "runtime/artifact/Format.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace tessera::artifact {

std::string locationName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    if (name.getName() == "grad" || name.getName() == "recompute")
      return name.getName().str() + "(" + locationName(name.getChildLoc()) + ")";
    return name.getName().str();
  }
  if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      if (std::string name = locationName(part); !name.empty())
        return name;
  }
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return locationName(call.getCallee());
  return "";
}

static std::vector<int64_t> toVector(ArrayRef<int64_t> values) { return {values.begin(), values.end()}; }

static AxisRole axisRole(dist::AxisRole role) {
  switch (role) {
  case dist::AxisRole::Replica:
    return AxisRole::Replica;
  case dist::AxisRole::Data:
    return AxisRole::Data;
  case dist::AxisRole::Sequence:
    return AxisRole::Sequence;
  case dist::AxisRole::Model:
    return AxisRole::Model;
  case dist::AxisRole::Expert:
    return AxisRole::Expert;
  case dist::AxisRole::Stage:
    return AxisRole::Stage;
  }
  llvm_unreachable("unknown role");
}

LogicalResult Tables::fill() {
  if (auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMesh))
    for (auto [index, size] : llvm::enumerate(mesh.getSizes())) {
      auto axis = std::make_unique<MeshAxisT>();
      axis->name = mesh.getAxisName(index).str();
      axis->size = size;
      axis->role = axisRole(mesh.getRoles()[index]);
      table.mesh.push_back(std::move(axis));
    }
  auto programs = module.getOps<exec::ProgramOp>();
  if (programs.empty())
    return module.emitError("expected an exec.program: the module has not been lowered");
  for (exec::ProgramOp op : programs)
    if (failed(fillProgram(op)))
      return failure();
  fillStreams();
  fillTensors();
  fillAdapters();
  fillWeightMap();
  fillProducts();
  return success();
}

LogicalResult Tables::fillProgram(exec::ProgramOp op) {
  FailureOr<train::ProgramKind> kind = train::programKind(op);
  if (failed(kind))
    return failure();
  if ((*kind == train::ProgramKind::Train) != table.programs.empty())
    return op.emitError("expected one program that trains, before all others");
  program = op;
  into = table.programs.emplace_back(std::make_unique<ProgramT>()).get();
  switch (*kind) {
  case train::ProgramKind::Train:
    into->kind = ProgramKind::Train;
    break;
  case train::ProgramKind::Evaluate:
    into->kind = ProgramKind::Evaluate;
    break;
  }
  into->name = op.getSymName().str();
  buffers.clear();
  collectives.clear();
  numInstructions = lastCompute = 0;
  if (failed(fillMemory()) || failed(fillInstructions(op.getBody().front(), into->instructions)))
    return failure();
  into->collective_hash = llvm::xxHash64(collectives);
  return success();
}

void Tables::fillStreams() {
  static_assert(exec::kNumStreams == maxStreams);
  auto mesh = module->getAttrOfType<dist::MeshAttr>(dist::kMesh);
  for (uint32_t number = 0; number < numStreams; ++number) {
    auto stream = std::make_unique<StreamT>();
    const std::optional<bool> reduces = exec::streamReduces(number);
    stream->kind = reduces                          ? (*reduces ? StreamKind::Reduce : StreamKind::Gather)
                   : number == exec::kComputeStream ? StreamKind::Compute
                                                    : StreamKind::Copies;
    stream->axis = mesh ? exec::streamAxis(mesh, number).str() : "";
    table.streams.push_back(std::move(stream));
  }
}

FailureOr<DataType> Tables::dataType(mlir::Operation *op, Type type) {
  std::optional<DataType> result = TypeSwitch<Type, std::optional<DataType>>(type)
                                       .Case([](Float32Type) { return DataType::F32; })
                                       .Case([](Float64Type) { return DataType::F64; })
                                       .Case([](Float16Type) { return DataType::F16; })
                                       .Case([](BFloat16Type) { return DataType::BF16; })
                                       .Case([](Float8E4M3FNType) { return DataType::F8E4M3FN; })
                                       .Case([](Float8E5M2Type) { return DataType::F8E5M2; })
                                       .Case([](Float8E8M0FNUType) { return DataType::F8E8M0FNU; })
                                       .Case([](IntegerType integer) -> std::optional<DataType> {
                                         switch (integer.getWidth()) {
                                         case 1:
                                           return DataType::Bool;
                                         case 8:
                                           return integer.isUnsigned() ? DataType::U8 : DataType::I8;
                                         case 32:
                                           return DataType::I32;
                                         case 64:
                                           return DataType::I64;
                                         default:
                                           return std::nullopt;
                                         }
                                       })
                                       .Default([](Type) { return std::nullopt; });
  if (!result)
    return op->emitError() << "element type " << type << " has no representation in an artifact";
  return *result;
}

int32_t Tables::group(ArrayAttr axes) {
  if (!axes || axes.empty())
    return -1;
  auto [found, isNew] = groups.try_emplace(axes, table.groups.size());
  if (isNew) {
    auto entry = std::make_unique<GroupT>();
    for (Attribute axis : axes)
      entry->axes.push_back(cast<StringAttr>(axis).str());
    table.groups.push_back(std::move(entry));
  }
  return found->second;
}

uint32_t Tables::location(Location loc) {
  auto [found, isNew] = locations.try_emplace(locationName(loc), table.locations.size());
  if (isNew)
    table.locations.push_back(found->getKey().str());
  return found->second;
}

uint32_t Tables::kernel(StringRef symbol) {
  auto [found, isNew] = kernels.try_emplace(symbol, table.kernels.size());
  if (isNew) {
    auto entry = std::make_unique<KernelT>();
    entry->symbol = symbol.str();
    table.kernels.push_back(std::move(entry));
  }
  return found->second;
}

LogicalResult Tables::fillMemory() {
  for (auto op : program.getOps<exec::ArenaOp>()) {
    auto [found, isNew] = arenas.try_emplace(op.getSymName(), table.arenas.size());
    if (isNew) {
      auto arena = std::make_unique<ArenaT>();
      arena->name = op.getSymName().str();
      arena->kind = ArenaKind(op.getKind());
      table.arenas.push_back(std::move(arena));
    }
    uint64_t &bytes = table.arenas[found->second]->bytes;
    bytes = std::max<uint64_t>(bytes, op.getBytes());
  }
  for (auto op : program.getOps<exec::SlotOp>()) {
    auto arena = SymbolTable::lookupNearestSymbolFrom<exec::ArenaOp>(op, op.getArenaAttr());
    if (!arena || !op.getOffset() || !op.getLive() || op.getLive()->size() != 2)
      return op.emitError("slot has no place yet: plan-memory has not run");
    auto slot = std::make_unique<SlotT>();
    slot->name = op.getName().str();
    slot->arena = arenas.lookup(arena.getSymName());
    slot->offset = *op.getOffset();
    slot->bytes = op.getBytes();
    slot->memory_class = MemoryClass(op.getMemoryClass());
    slot->first_instruction = op.getLive()->front();
    slot->last_instruction = op.getLive()->back();
    into->slots.push_back(std::move(slot));
  }
  for (auto op : program.getOps<exec::BufferOp>()) {
    auto slot = op.getSlot().getDefiningOp<exec::SlotOp>();
    MemRefType type = op.getType();
    FailureOr<DataType> dtype = dataType(op, type.getElementType());
    if (failed(dtype))
      return failure();
    auto buffer = std::make_unique<BufferT>();
    buffer->arena = arenas.lookup(slot.getArena());
    buffer->offset = *slot.getOffset() + op.getOffset();
    buffer->dtype = *dtype;
    buffer->shape = toVector(type.getShape());
    buffer->strides = toVector(exec::stridesOf(type));
    if (int64_t stride = op.getIterationStride())
      buffer->iteration_strides.push_back(stride);
    buffer->rank_stride = op.getRankStride();
    buffer->rank_group = group(op.getRankAxesAttr());
    buffers[op.getResult()] = table.buffers.size();
    table.buffers.push_back(std::move(buffer));
  }
  return success();
}

LogicalResult Tables::fillInstructions(Block &block, Instructions &list) {
  for (mlir::Operation &op : block) {
    if (auto argument = dyn_cast<exec::ArgumentOp>(op)) {
      if (failed(fillArgument(argument)))
        return failure();
    } else if (auto result = dyn_cast<exec::ResultOp>(op)) {
      if (failed(fillResult(result)))
        return failure();
    } else if (auto probe = dyn_cast<exec::ProbeOp>(op)) {
      if (failed(fillProbe(probe)))
        return failure();
    } else if (exec::isInstruction(&op)) {
      auto instruction = std::make_unique<InstructionT>();
      instruction->stream = exec::streamOf(&op);
      instruction->location = location(op.getLoc());
      numStreams = std::max<uint32_t>(numStreams, instruction->stream + 1);
      if (instruction->stream == exec::kComputeStream)
        lastCompute = numInstructions;
      ++numInstructions;
      if (failed(fillOperation(&op, instruction->operation)))
        return failure();
      list.push_back(std::move(instruction));
    }
  }
  return success();
}

LogicalResult Tables::fillOperation(mlir::Operation *op, OperationUnion &operation) {
  auto set = [&](auto &&value) {
    operation.Set(std::move(value));
    return success();
  };
  return TypeSwitch<mlir::Operation *, LogicalResult>(op)
      .Case([&](exec::LaunchOp op) {
        LaunchT value;
        value.kernel = kernel(op.getKernel());
        for (Value operand : op->getOperands())
          value.buffers.push_back(buffer(operand));
        value.extent = op.getExtent();
        value.grain = op.getGrain();
        return set(std::move(value));
      })
      .Case([&](exec::GemmOp op) {
        GemmT value;
        value.a = buffer(op.getA());
        value.b = buffer(op.getB());
        value.c = buffer(op.getC());
        value.alpha = op.getAlpha().convertToFloat();
        value.beta = op.getBeta().convertToFloat();
        value.epilogue = Epilogue(op.getEpilogue());
        if (op.getEpilogueInput())
          value.epilogue_input = static_cast<int32_t>(buffer(op.getEpilogueInput()));
        if (op.getEpilogueOutput())
          value.epilogue_output = static_cast<int32_t>(buffer(op.getEpilogueOutput()));
        if (op.getAScales()) {
          value.a_scales = static_cast<int32_t>(buffer(op.getAScales()));
          value.b_scales = static_cast<int32_t>(buffer(op.getBScales()));
          value.a_scale_mode = ScaleMode(op.getAScaleMode());
          value.b_scale_mode = ScaleMode(op.getBScaleMode());
          value.fast_accumulation = op.getFastAccumulation();
        }
        return set(std::move(value));
      })
      .Case([&](exec::ConvOp op) {
        ConvT value;
        value.kind = ConvKind(op.getKind());
        value.x = buffer(op.getX());
        value.w = buffer(op.getW());
        value.y = buffer(op.getY());
        value.strides = toVector(op.getStrides());
        value.padding = toVector(op.getPadding());
        value.dilations = toVector(op.getDilations());
        value.groups = op.getGroups();
        return set(std::move(value));
      })
      .Case([&](exec::AttentionOp op) {
        AttentionT value;
        value.begin = op.getBegin() ? int32_t(buffer(op.getBegin())) : -1;
        value.end = op.getEnd() ? int32_t(buffer(op.getEnd())) : -1;
        value.window = op.getWindow().value_or(0);
        value.q = buffer(op.getQ());
        value.k = buffer(op.getK());
        value.v = buffer(op.getV());
        value.mask = op.getMask() ? int32_t(buffer(op.getMask())) : -1;
        value.out = buffer(op.getOut());
        value.lse = buffer(op.getLse());
        value.scale = op.getScale().convertToDouble();
        value.causal = op.getCausal();
        return set(std::move(value));
      })
      .Case([&](exec::AttentionGradOp op) {
        AttentionGradT value;
        value.partial = op.getPartial();
        value.begin = op.getBegin() ? int32_t(buffer(op.getBegin())) : -1;
        value.end = op.getEnd() ? int32_t(buffer(op.getEnd())) : -1;
        value.window = op.getWindow().value_or(0);
        value.q = buffer(op.getQ());
        value.k = buffer(op.getK());
        value.v = buffer(op.getV());
        value.mask = op.getMask() ? int32_t(buffer(op.getMask())) : -1;
        value.out = buffer(op.getOut());
        value.lse = buffer(op.getLse());
        value.dout = buffer(op.getDout());
        value.dq = buffer(op.getDq());
        value.dk = buffer(op.getDk());
        value.dv = buffer(op.getDv());
        value.workspace = op.getWorkspace() ? int32_t(buffer(op.getWorkspace())) : -1;
        value.scale = op.getScale().convertToDouble();
        value.causal = op.getCausal();
        return set(std::move(value));
      })
      .Case([&](exec::CollectiveOp op) {
        CollectiveT value;
        value.kind = CollectiveKind(op.getKind());
        value.group = group(op.getAxes());
        value.input = buffer(op.getInput());
        value.output = buffer(op.getOutput());
        value.shift = op.getShift();
        value.reduction = ReductionKind(op.getReduction());
        if (op.getOrigin())
          value.label = op.getOrigin()->getText();
        value.reason = op.getReason().value_or("").str();
        value.done_reason = op.getDoneReason().value_or("").str();
        hashCollective(op);
        return set(std::move(value));
      })
      .Case([&](exec::CopyOp op) {
        CopyT value;
        value.source = buffer(op.getSource());
        value.target = buffer(op.getTarget());
        return set(std::move(value));
      })
      .Case([&](exec::FillOp op) {
        FillT value;
        value.target = buffer(op.getTarget());
        value.value = op.getValue().convertToDouble();
        return set(std::move(value));
      })
      .Case([&](exec::AxisIndexOp op) {
        AxisIndexT value;
        value.group = group(op.getAxes());
        value.target = buffer(op.getTarget());
        return set(std::move(value));
      })
      .Case<exec::RecordOp, exec::WaitOp>([&](auto op) {
        std::conditional_t<std::is_same_v<decltype(op), exec::RecordOp>, RecordT, WaitT> value;
        value.event = op.getEvent();
        into->num_events = std::max<uint32_t>(into->num_events, value.event + 1);
        return set(std::move(value));
      })
      .Case([&](exec::LoopOp op) {
        RepeatT value;
        value.count = op.getCount();
        collectives += "repeat " + std::to_string(value.count) + " {\n";
        if (failed(fillInstructions(op.getBody().front(), value.body)))
          return failure();
        collectives += "}\n";
        return set(std::move(value));
      })
      .Default([](mlir::Operation *op) { return op->emitError("is not an instruction"); });
}

void Tables::hashCollective(exec::CollectiveOp op) {
  llvm::raw_string_ostream out(collectives);
  out << exec::stringifyCollectiveKind(op.getKind()) << ' ' << op.getAxes() << ' ' << op.getInput().getType() << ' '
      << op.getOutput().getType() << ' ' << op.getShift() << ' ' << exec::stringifyReductionKind(op.getReduction())
      << ' ' << op.getStream() << '\n';
}

} // namespace tessera::artifact
