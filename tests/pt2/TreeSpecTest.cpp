//===- TreeSpecTest.cpp - names of what a module returns -------------------===//

#include "frontends/pt2/TreeSpec.h"

#include <gtest/gtest.h>

using namespace tessera::pt2;
using Names = std::optional<std::vector<std::string>>;

namespace {
const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";

std::string node(const std::string &type, const std::string &context, const std::string &children) {
  return R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)" + children + "]}";
}
Names names(const std::string &tree, const NamedTuples &tuples = {}) { return leafNames("[1, " + tree + "]", tuples); }
Names list(std::vector<std::string> expected) { return expected; }
} // namespace

TEST(TreeSpec, OneResultAndLists) {
  EXPECT_EQ(names(leaf), list({"output"}));
  EXPECT_EQ(names(node("builtins.tuple", "\"null\"", leaf + "," + leaf)), list({"output0", "output1"}));
  EXPECT_EQ(names(node("builtins.list", "\"null\"", node("builtins.tuple", "\"null\"", leaf + "," + leaf))),
            list({"output0.0", "output0.1"}));
}

TEST(TreeSpec, KeysOfEachContainer) {
  const std::string two = leaf + "," + leaf;
  const auto expected = list({"loss", "logits"});
  const std::string keys = R"("[\"loss\", \"logits\"]")";
  EXPECT_EQ(names(node("builtins.dict", keys, two)), expected);
  EXPECT_EQ(names(node("transformers.modeling_outputs.CausalLMOutput", keys, two)), expected);
  EXPECT_EQ(names(node("my.Dataclass", R"("[[\"loss\", \"logits\"], [\"cache\"]]")", two)), expected);
  EXPECT_EQ(names(node("collections.defaultdict", R"({"dict_context": ["loss", "logits"]})", two)), expected);
  EXPECT_EQ(names(node("collections.namedtuple", "\"my.Tuple\"", two), {{"my.Tuple", {"loss", "logits"}}}), expected);
}

TEST(TreeSpec, DeeperOnesAfterADot) {
  const std::string nested =
      node("builtins.dict", R"("[\"a\", 3]")", node("builtins.list", "\"null\"", leaf + "," + leaf) + "," + leaf);
  EXPECT_EQ(names(nested), list({"a.0", "a.1", "3"}));
}

TEST(TreeSpec, NotUnderstood) {
  const Names none;
  EXPECT_EQ(leafNames("", {}), none);
  EXPECT_EQ(leafNames("[2, " + leaf + "]", {}), none) << "another version";
  EXPECT_EQ(names(node("builtins.dict", R"("[\"a\"]")", leaf + "," + leaf)), none) << "fewer keys than children";
  EXPECT_EQ(names(node("builtins.dict", R"("[\"a\", \"a\"]")", leaf + "," + leaf)), none) << "one name twice";
  EXPECT_EQ(names(R"({"type": 3, "children_spec": []})"), none);
  std::string deep = leaf;
  for (int i = 0; i < 100; ++i)
    deep = node("builtins.list", "\"null\"", deep);
  EXPECT_EQ(names(deep), none);
}
