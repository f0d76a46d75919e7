//===- ReadTest.cpp - programs as PyTorch writes them ---------------------===//

#include "ArchiveFile.h"

#include <cmath>
#include <gtest/gtest.h>
#include <regex>

using namespace tessera::pt2;

namespace {
Program read(const std::string &name, const std::string &model = "") {
  auto program = readProgram(programPath(name), model);
  if (program)
    return std::move(*program);
  ADD_FAILURE() << toString(program.takeError());
  return {};
}

std::vector<std::string> targets(const Graph &graph) {
  std::vector<std::string> list;
  for (const Node &node : graph.nodes)
    list.push_back(node.target);
  return list;
}

const Node &node(const Graph &graph, const std::string &target) {
  for (const Node &candidate : graph.nodes)
    if (candidate.target == "torch.ops.aten." + target)
      return candidate;
  ADD_FAILURE() << "no node " << target;
  static const Node nothing;
  return nothing;
}
} // namespace

TEST(Pt2Read, Mlp) {
  const Program program = read("mlp");
  EXPECT_EQ(program.schemaMajor, 8);
  EXPECT_EQ(program.schemaMinor, 20);
  EXPECT_EQ(program.torchVersion.substr(0, 2), "2.");
  EXPECT_EQ(program.modelName, "model");
  EXPECT_TRUE(program.warnings.empty());
  EXPECT_EQ(targets(program.graph),
            (std::vector<std::string>{"torch.ops.aten.linear.default", "torch.ops.aten.relu.default",
                                      "torch.ops.aten.linear.default", "torch.ops.aten.cross_entropy_loss.default"}));

  using Kind = InputSpec::Kind;
  const auto &inputs = program.signature.inputs;
  ASSERT_EQ(inputs.size(), 5u);
  EXPECT_EQ(inputs[0].kind, Kind::Parameter);
  EXPECT_EQ(inputs[0].name, "p_up_weight");
  EXPECT_EQ(inputs[0].target, "up.weight");
  EXPECT_EQ(inputs[3].kind, Kind::UserInput);
  EXPECT_EQ(inputs[3].name, "x");
  ASSERT_EQ(program.signature.outputs.size(), 2u);
  EXPECT_EQ(program.signature.outputs[0].kind, OutputSpec::Kind::UserOutput);
  EXPECT_EQ(program.signature.outputs[0].name, "cross_entropy_loss");

  const TensorMeta &weight = program.graph.tensors.at("p_up_weight");
  EXPECT_EQ(weight.dtype, ScalarType::Float);
  EXPECT_TRUE(weight.requiresGrad);
  ASSERT_EQ(weight.sizes.size(), 2u);
  EXPECT_TRUE(weight.sizes[0].isConstant());
  EXPECT_EQ(weight.sizes[0].value, 4);
  EXPECT_EQ(weight.sizes[1].value, 3);
  EXPECT_EQ(program.graph.tensors.at("label").dtype, ScalarType::Long);
}

TEST(Pt2Read, WhereNodesComeFrom) {
  const Program program = read("mlp");
  const Node &linear = program.graph.nodes.front();
  EXPECT_EQ(linear.name, "linear");
  ASSERT_EQ(linear.inputs.size(), 3u);
  EXPECT_EQ(linear.inputs[1].name, "weight");
  EXPECT_EQ(linear.inputs[1].kind, NamedArgument::Kind::Positional);
  ASSERT_TRUE(linear.input("bias") && linear.input("bias")->as<TensorArg>());
  EXPECT_EQ(linear.input("bias")->as<TensorArg>()->name, "p_up_bias");
  EXPECT_EQ(linear.input("nothing"), nullptr);
  ASSERT_EQ(linear.modules.size(), 2u);
  EXPECT_EQ(linear.modules[0].path, "");
  EXPECT_EQ(linear.modules[0].className, "__main__.Mlp");
  EXPECT_EQ(linear.modules[1].path, "up");
  EXPECT_EQ(linear.modules[1].className, "torch.nn.modules.linear.Linear");
  // The innermost frame is PyTorch's; the user's is the one before.
  ASSERT_TRUE(linear.source);
  EXPECT_EQ(linear.source->file, "make_programs.py");
  EXPECT_EQ(linear.source->function, "forward");
  EXPECT_GT(linear.source->line, 1);
  EXPECT_EQ(linear.source->text, "logits = self.down(F.relu(self.up(x)))");
  EXPECT_EQ(linear.metadata.count("torch_fn"), 1u);
}

TEST(Pt2Read, DynamicBatch) {
  const Program program = read("dynamic");
  ASSERT_EQ(program.ranges.size(), 1u);
  const auto &[symbol, range] = *program.ranges.begin();
  EXPECT_EQ(range.min, 2);
  EXPECT_EQ(range.max, 64);
  const SymInt &batch = program.graph.tensors.at("x").sizes[0];
  EXPECT_FALSE(batch.isConstant());
  EXPECT_EQ(batch.expression, symbol);
  EXPECT_EQ(batch.symbol(), symbol);
  EXPECT_EQ(batch.evaluate({{symbol, 7}}), 7);
  EXPECT_EQ(batch.evaluate({}), std::nullopt);
  EXPECT_TRUE(batch.hasHint);
  EXPECT_EQ(batch.value, 2);
  EXPECT_EQ(program.graph.tensors.at("linear").sizes[0].expression, symbol);
  EXPECT_FALSE(program.guards.empty());
}

TEST(Pt2Read, OpenRangesAndSymbolicArguments) {
  const Program program = read("block");
  ASSERT_EQ(program.ranges.size(), 2u);
  for (const auto &[symbol, range] : program.ranges)
    EXPECT_FALSE(range.max) << symbol;
  // chunk has a list of tensors as its output.
  const Node &chunk = node(program.graph, "chunk.default");
  ASSERT_EQ(chunk.outputs.size(), 1u);
  ASSERT_TRUE(chunk.outputs[0].as<std::vector<TensorArg>>());
  EXPECT_EQ(chunk.outputs[0].as<std::vector<TensorArg>>()->size(), 3u);
  const Node &attention = node(program.graph, "scaled_dot_product_attention.default");
  ASSERT_TRUE(attention.input("is_causal"));
  EXPECT_EQ(*attention.input("is_causal")->as<bool>(), true);
  // The norm is called twice.
  int64_t calls = 0;
  for (const Node &candidate : program.graph.nodes)
    if (candidate.target == "torch.ops.aten.layer_norm.default") {
      EXPECT_EQ(candidate.modules.back().path, "norm");
      calls = std::max(calls, candidate.modules.back().call + 1);
    }
  EXPECT_EQ(calls, 2);
}

TEST(Pt2Read, BuffersAndConstants) {
  const Program program = read("norm");
  using Kind = InputSpec::Kind;
  std::map<std::string, const InputSpec *> specs;
  for (const InputSpec &spec : program.signature.inputs)
    specs[spec.target] = &spec;
  ASSERT_TRUE(specs.count("mask") && specs.count("norm.running_mean") && specs.count("lifted_tensor_0"));
  EXPECT_EQ(specs["mask"]->kind, Kind::Buffer);
  EXPECT_FALSE(specs["mask"]->persistent);
  EXPECT_TRUE(specs["norm.running_mean"]->persistent);
  EXPECT_EQ(specs["lifted_tensor_0"]->kind, Kind::TensorConstant);
  EXPECT_EQ(program.weights.at("mask").path.find("data/constants/"), 0u);
  EXPECT_TRUE(*node(program.graph, "batch_norm.default").input("training")->as<bool>());
  EXPECT_EQ(*node(program.graph, "dropout.default").input("p")->as<double>(), 0.25);
  const double *fill = node(program.graph, "masked_fill.Scalar").input("value")->as<double>();
  ASSERT_TRUE(fill);
  EXPECT_TRUE(std::isinf(*fill) && *fill < 0);
}

TEST(Pt2Read, Mutations) {
  const Program program = read("mutates");
  const auto &outputs = program.signature.outputs;
  ASSERT_EQ(outputs.size(), 4u);
  EXPECT_EQ(outputs[0].kind, OutputSpec::Kind::BufferMutation);
  EXPECT_EQ(outputs[0].target, "count");
  EXPECT_EQ(outputs[1].kind, OutputSpec::Kind::UserInputMutation);
  EXPECT_EQ(outputs[1].target, "state");
  EXPECT_EQ(outputs[2].kind, OutputSpec::Kind::UserOutput);
  EXPECT_NE(program.outSpec.find("\\\"sum\\\""), std::string::npos) << program.outSpec;
}

TEST(Pt2Read, GraphsWithinGraphs) {
  const Program program = read("branch");
  const Node &cond = program.graph.nodes.back();
  EXPECT_EQ(cond.target, "torch.ops.higher_order.cond");
  std::vector<const Graph *> bodies;
  for (const NamedArgument &input : cond.inputs)
    if (const auto *body = input.argument.as<GraphArg>())
      bodies.push_back(body->graph.get());
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_EQ(targets(*bodies[0]), std::vector<std::string>{"torch.ops.aten.add.Tensor"});
  EXPECT_EQ(targets(*bodies[1]), std::vector<std::string>{"torch.ops.aten.mul.Tensor"});
  EXPECT_EQ(*bodies[1]->nodes[0].input("other")->as<int64_t>(), 2);
}

TEST(Pt2Read, SeveralPrograms) {
  EXPECT_EQ(read("two", "large").graph.nodes.size(), 4u);
  EXPECT_EQ(read("two", "small").weights.size(), 0u);
  const std::string bytes = fileBytes(programPath("two"));
  EXPECT_EQ(readError(bytes), "'test' holds several programs, say which is meant: 'large', 'small'");
  EXPECT_EQ(readError(bytes, "medium"), "'test' holds no program 'medium'; it holds 'large', 'small'");
}

TEST(Pt2Read, NewerMinor) {
  ArchiveFile file = ArchiveFile::of("mlp");
  file.replace("model.json", "\"minor\": 20", "\"minor\": 21");
  file.replace("model.json", "\"is_hop_single_tensor_return\": null", "\"is_hop\": 1");
  const std::string bytes = file.pack();
  auto archive = Archive::openBytes(bytes, "test");
  ASSERT_TRUE(static_cast<bool>(archive));
  auto program = readProgram(*archive);
  ASSERT_TRUE(static_cast<bool>(program)) << toString(program.takeError());
  ASSERT_EQ(program->warnings.size(), 2u);
  EXPECT_EQ(program->warnings[0], "the schema 8.21 is newer than this reader, which knows 8.0 to 8.20: fields that it "
                                  "does not know are ignored");
  EXPECT_EQ(program->warnings[1], "field 'is_hop' of a newer schema is ignored");
}

// As PyTorch 2.6 writes them: what is made of a constant is found again by a node's name.
TEST(Pt2Read, NodesWithoutNamesAreCalledAsTheirResults) {
  const Program whole = read("mlp");
  ArchiveFile file = ArchiveFile::of("mlp");
  std::string &model = file["models/model.json"];
  const size_t before = model.size();
  model = std::regex_replace(model, std::regex(R"(("is_hop_single_tensor_return": null), "name": "[^"]*")"), "$1");
  ASSERT_LT(model.size(), before);
  const std::string bytes = file.pack();
  auto archive = Archive::openBytes(bytes, "test");
  ASSERT_TRUE(static_cast<bool>(archive)) << toString(archive.takeError());
  auto program = readProgram(*archive);
  ASSERT_TRUE(static_cast<bool>(program)) << toString(program.takeError());
  ASSERT_EQ(program->graph.nodes.size(), whole.graph.nodes.size());
  for (size_t i = 0; i < whole.graph.nodes.size(); ++i)
    EXPECT_EQ(program->graph.nodes[i].name, whole.graph.nodes[i].name);
}
