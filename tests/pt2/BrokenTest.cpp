//===- BrokenTest.cpp - files that are refused ----------------------------===//

#include "ArchiveFile.h"

#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

using namespace tessera::pt2;

namespace {
const char *const kModel = "models/model.json";
const char *const kWeights = "model_weights_config.json";

/// The error after replacing a text of an entry of mlp.pt2.
std::string replaced(const std::string &entry, const std::string &from, const std::string &to) {
  ArchiveFile file = ArchiveFile::of("mlp");
  file.replace(entry, from, to);
  return file.readError();
}
std::string model(const std::string &from, const std::string &to) {
  std::string text = replaced(kModel, from, to);
  const std::string prefix = "'test', entry 'models/model.json': ";
  EXPECT_EQ(text.substr(0, prefix.size()), prefix);
  return text.substr(std::min(prefix.size(), text.size()));
}
std::string weights(const std::string &from, const std::string &to) {
  std::string text = replaced(kWeights, from, to);
  const std::string prefix = "'test', entry 'data/weights/model_weights_config.json': ";
  EXPECT_EQ(text.substr(0, prefix.size()), prefix) << text;
  return text.substr(std::min(prefix.size(), text.size()));
}
} // namespace

TEST(Pt2Broken, NotAnArchive) {
  EXPECT_EQ(readError("hello"), "'test' is not a zip archive; torch.export.save writes one");
  EXPECT_EQ(readError(""), "'test' is empty");
  auto missing = Archive::open("/nowhere/x.pt2");
  ASSERT_FALSE(static_cast<bool>(missing));
  EXPECT_EQ(toString(missing.takeError()), "cannot open '/nowhere/x.pt2': No such file or directory");
  auto folder = Archive::open(TESSERA_PT2_PROGRAMS);
  ASSERT_FALSE(static_cast<bool>(folder));
  EXPECT_TRUE(llvm::StringRef(toString(folder.takeError())).ends_with("is not a file"));
}

TEST(Pt2Broken, Truncated) {
  for (const char *name : {"mlp", "tied"}) {
    const std::string bytes = fileBytes(programPath(name));
    const std::string expected =
        "'test' is truncated or damaged: a zip archive without its directory, which is at the end";
    EXPECT_EQ(readError(bytes.substr(0, bytes.size() / 2)), expected);
    EXPECT_EQ(readError(bytes.substr(0, 10)), expected);
    // Every other length is some error.
    for (size_t length = 0; length < bytes.size(); length += 37)
      EXPECT_NE(readError(bytes.substr(0, length)), "") << length;
  }
}

TEST(Pt2Broken, Format) {
  ArchiveFile file = ArchiveFile::of("mlp");
  file["archive_format"] = "pt3";
  EXPECT_EQ(file.readError(), "'test' has the format 'pt3', expected 'pt2'");
  file.remove("archive_format");
  EXPECT_EQ(file.readError(),
            "'test' is a zip archive but not a PT2 archive (it has no archive_format); was it written "
            "by torch.save or torch.jit.save instead of torch.export.save?");
  file.entries = {{"serialized_exported_program.json", "{}"}};
  EXPECT_EQ(file.readError(), "'test' has the format of PyTorch before 2.8, whose weights are pickled: save it again "
                              "with a newer torch.export.save");
  file = ArchiveFile::of("mlp");
  file["archive_version"] = "1";
  EXPECT_EQ(file.readError(), "'test' has the archive version '1', this reader knows 0");
  file.remove("archive_version");
  EXPECT_EQ(file.readError(), "");
  file["byteorder"] = "big";
  EXPECT_EQ(file.readError(), "'test' has the byte order 'big', expected 'little'");
}

TEST(Pt2Broken, Parts) {
  ArchiveFile file = ArchiveFile::of("mlp");
  file.remove(kModel);
  EXPECT_EQ(file.readError(), "'test' holds no exported program (no entry models/<name>.json)");
  file = ArchiveFile::of("mlp");
  file.remove(kWeights);
  EXPECT_EQ(file.readError(), "'test' has no entry 'data/weights/model_weights_config.json'");
  file.entries.emplace_back("mlp/data/weights/model.pt", "pickle");
  EXPECT_EQ(file.readError(), "'test' holds its weights pickled ('data/weights/model.pt'), as PyTorch 2.8 wrote them: "
                              "save it again with a newer torch.export.save");
  // Two root folders, of which one would hide the other.
  file = ArchiveFile::of("mlp");
  file.entries.emplace_back("other/archive_format", "pt2");
  EXPECT_EQ(file.readError(), "'test', entry 'other/archive_format' occurs twice");
}

TEST(Pt2Broken, NoteOfTheExport) {
  ArchiveFile file = ArchiveFile::of("mlp");
  file.entries.emplace_back("mlp/extra/tessera.json", R"({"mode": "training", "evaluation_differs": null})");
  EXPECT_EQ(file.readError(), "");
  const std::string where = "'test', entry 'extra/tessera.json': ";
  for (auto [text, problem] : {std::pair("{}", "field 'mode' is missing"),
                               std::pair(R"({"mode": "dreaming"})", "mode: expected \"training\" or \"evaluation\""),
                               std::pair(R"({"mode": "training", "evaluation_differs": 3})",
                                         "evaluation_differs: expected a string, found an integer")}) {
    file["tessera.json"] = text;
    EXPECT_EQ(file.readError(), where + problem);
  }
}

TEST(Pt2Broken, NoteOfWeights) {
  ArchiveFile file = ArchiveFile::of("mlp");
  const std::string piece =
      R"({"tensor": "t", "shape": [4], "sizes": [4], "offset": 0, "strides": [1], "tensor_offset": 0,
                                "tensor_strides": [1]})";
  auto note = [](const std::string &parameters) {
    return R"({"mode": "training", "weights": {"root": "", "prefix": "model", "refused": "", "unread": ["r"], "parameters": {)" +
           parameters + "}}}";
  };
  file.entries.emplace_back("mlp/extra/tessera.json", note(R"("w": {"pieces": [)" + piece + R"(], "others": ["o"]})"));
  EXPECT_EQ(file.readError(), "");
  auto changed = [&](const std::string &from, const std::string &to) {
    std::string text = piece;
    text.replace(text.find(from), from.size(), to);
    return note(R"("w": {"pieces": [)" + text + R"(], "others": []})");
  };
  const std::string where = "'test', entry 'extra/tessera.json': weights.";
  const std::string at = "parameters.w.pieces[0]";
  for (const auto &[text, problem] : std::vector<std::pair<std::string, std::string>>{
           {R"({"mode": "training", "weights": {}})", "field 'root' is missing"},
           {note(R"("w": {"pieces": []})"), "parameters.w: field 'others' is missing"},
           {note(R"("w": {"pieces": [], "others": []}, "w": {"pieces": [], "others": []})"), ""},
           {changed("\"sizes\": [4]", "\"sizes\": [0]"),
            at + ": expected loops of sizes of at least 1, each with two strides"},
           {changed("\"sizes\": [4]", "\"sizes\": []"),
            at + ": expected loops of sizes of at least 1, each with two strides"},
           {changed("\"strides\": [1]", "\"strides\": [-1]"), at + ".strides[0]: expected a number of at least 0"},
           {changed("\"offset\": 0", "\"offset\": -2"), at + ".offset: expected a number of at least 0"}}) {
    file["tessera.json"] = text;
    EXPECT_NE(file.readError().find(problem), std::string::npos) << file.readError();
    EXPECT_NE(file.readError(), "") << text;
  }
}

TEST(Pt2Broken, ClaimsOfTheDirectory) {
  // The uncompressed size of the first entry, in the directory.
  std::string bytes = fileBytes(programPath("tied"));
  const size_t at = bytes.find(std::string("PK\1\2", 4));
  ASSERT_NE(at, std::string::npos);
  bytes[at + 24 + 3] = 0x7f;
  EXPECT_NE(readError(bytes).find("claims to be"), std::string::npos) << readError(bytes);
  // A method of compression that no reader of PyTorch knows.
  bytes = fileBytes(programPath("tied"));
  bytes[at + 10] = 14;
  EXPECT_NE(readError(bytes).find("is compressed by method 14, expected stored or deflated"), std::string::npos);
}

TEST(Pt2Broken, Version) {
  EXPECT_EQ(model("\"major\": 8", "\"major\": 9"), "schema_version: the schema is 9.20, this reader knows 8.0 to 8.20");
  EXPECT_EQ(model("\"major\": 8", "\"major\": 7"), "schema_version: the schema is 7.20, this reader knows 8.0 to 8.20");
  EXPECT_EQ(model("\"schema_version\"", "\"version\""), "field 'schema_version' is missing");
  EXPECT_EQ(model("\"verifiers\"", "\"verify\""), "unknown field 'verify'");
}

TEST(Pt2Broken, Json) {
  EXPECT_EQ(model("\"graph_module\": {", "\"graph_module\": "),
            "malformed JSON at byte 25 of 6430: syntax error while parsing object - unexpected ':'; "
            "expected '}'");
  ArchiveFile file = ArchiveFile::of("mlp");
  file[kModel] = "";
  EXPECT_NE(file.readError().find("malformed JSON at byte 1 of 0"), std::string::npos) << file.readError();
  file[kModel] = "[1]";
  EXPECT_EQ(file.readError(), "'test', entry 'models/model.json': expected an object, found a list");
  file[kModel] = std::string(100000, '[');
  EXPECT_EQ(file.readError(), "'test', entry 'models/model.json': lists and objects are nested deeper than 256");
  file[kModel] = "{\"a\": 1, \"a\": 2}";
  EXPECT_EQ(file.readError(), "'test', entry 'models/model.json': the name 'a' occurs twice in one object");
  EXPECT_EQ(model("\"minor\": 20", "\"minor\": 99999999999999999999"),
            "the integer 99999999999999999999 is out of range");
  EXPECT_EQ(model("\"minor\": 20", "\"minor\": 9223372036854775808"),
            "the integer 9223372036854775808 is out of range");
  EXPECT_NE(model("\"minor\": 20", "\"minor\": 1e999").find("number overflow"), std::string::npos);
}

TEST(Pt2Broken, Kinds) {
  const std::string where = "graph_module.graph.nodes[0].";
  EXPECT_EQ(model("\"target\": \"torch.ops.aten.linear.default\"", "\"target\": 3"),
            where + "target: expected a string, found an integer");
  EXPECT_EQ(model("\"kind\": 1", "\"kind\": 7"), where + "inputs[0].kind: unknown kind of argument 7");
  EXPECT_EQ(model("{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}",
                  "{\"name\": \"input\", \"arg\": {\"as_quaternion\": 1}"),
            where + "inputs[0].arg: unknown kind of argument 'as_quaternion'");
  EXPECT_EQ(model("{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}",
                  "{\"name\": \"input\", \"arg\": {\"as_int\": 1, \"as_bool\": true}"),
            where + "inputs[0].arg: expected an object with one name, found 2");
  EXPECT_EQ(model("\"tensor_values\": {\"p_up_weight\": {\"dtype\": 7",
                  "\"tensor_values\": {\"p_up_weight\": {\"dtype\": 99"),
            "graph_module.graph.tensor_values.p_up_weight.dtype: unknown scalar type 99");
  EXPECT_EQ(model("\"sizes\": [{\"as_int\": 4}", "\"sizes\": [{\"as_int\": -4}"),
            "graph_module.graph.tensor_values.p_up_weight: has the size -4");
  EXPECT_EQ(model("{\"parameter\": ", "{\"hyperparameter\": "),
            "graph_module.signature.input_specs[0]: unknown kind of input 'hyperparameter'");
}

TEST(Pt2Broken, NestedGraphs) {
  // Each level is a graph whose only input is a graph.
  std::string graph = "null";
  for (int i = 0; i < 20; ++i)
    graph = "{\"inputs\": [{\"as_graph\": {\"name\": \"g\", \"graph\": " + graph + "}}]}";
  const std::string text =
      model("\"graph\": {\"inputs\": [",
            "\"graph\": {\"inputs\": [{\"as_graph\": {\"name\": \"g\", \"graph\": " + graph + "}}, ");
  EXPECT_NE(text.find(".graph: graphs are nested deeper than 8"), std::string::npos) << text;
}

TEST(Pt2Broken, NamesOfTheGraph) {
  EXPECT_EQ(model("{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}",
                  "{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"relu\"}}"),
            "graph: tensor 'relu' is used by node 0 (torch.ops.aten.linear.default) before it is defined");
  EXPECT_EQ(model("{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}",
                  "{\"name\": \"input\", \"arg\": {\"as_tensor\": {\"name\": \"z\"}}"),
            "graph: tensor 'z', used by node 0 (torch.ops.aten.linear.default), is not described");
  EXPECT_EQ(model("\"outputs\": [{\"as_tensor\": {\"name\": \"relu\"}}]",
                  "\"outputs\": [{\"as_tensor\": {\"name\": \"linear\"}}]"),
            "graph: tensor 'linear' of node 1 (torch.ops.aten.relu.default) is defined twice");
  EXPECT_EQ(model("\"parameter_name\": \"up.weight\"", "\"parameter_name\": \"up.scale\""),
            "signature, input 0: the archive has no weight or constant 'up.scale', which is an input of the graph");
  EXPECT_EQ(model("\"parameter_name\": \"up.weight\"", "\"parameter_name\": \"up.bias\""),
            "signature, input 0: the weight 'up.bias' has other sizes or another type than the graph's input "
            "'p_up_weight'");
  EXPECT_EQ(model("{\"user_output\": {\"arg\": {\"as_tensor\": {\"name\": \"cross_entropy_loss\"}}}}, ", ""),
            "signature: has 5 inputs and 1 outputs, the graph has 5 and 2");
}

TEST(Pt2Broken, Weights) {
  ArchiveFile file = ArchiveFile::of("mlp");
  file["weight_0"].resize(44);
  EXPECT_EQ(file.readError(),
            "'test', entry 'data/weights/model_weights_config.json': config.up.weight: entry 'data/weights/weight_0' "
            "has 44 bytes, expected 48 for 'up.weight', float32");
  file.remove("weight_0");
  EXPECT_EQ(file.readError(), "'test', entry 'data/weights/model_weights_config.json': config.up.weight: the archive "
                              "has no entry 'data/weights/weight_0' for 'up.weight'");
  const std::string at = "config.up.weight";
  EXPECT_EQ(weights("\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": 1}"),
            at + ": entry 'data/weights/weight_0' has 48 bytes, expected 52 for 'up.weight', float32");
  EXPECT_EQ(weights("\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_int\": -1}"),
            at + ".tensor_meta: has the negative storage offset -1");
  EXPECT_EQ(weights("\"strides\": [{\"as_int\": 3}", "\"strides\": [{\"as_int\": 9223372036854775807}"),
            at + ": the sizes of 'up.weight' are out of range");
  EXPECT_EQ(weights("\"strides\": [{\"as_int\": 3}, {\"as_int\": 1}]", "\"strides\": [{\"as_int\": 3}]"),
            at + ".tensor_meta: has 2 sizes and 1 strides");
  EXPECT_EQ(weights("\"sizes\": [{\"as_int\": 4}", "\"sizes\": [{\"as_expr\": {\"expr_str\": \"s0\"}}"),
            at + ".tensor_meta: expected a number as size, found the expression 's0'");
  EXPECT_EQ(weights("\"sizes\": [{\"as_int\": 4}, {\"as_int\": 3}], \"requires_grad\": true, \"device\": {\"type\": "
                    "\"cpu\", \"index\": null}, \"strides\": [{\"as_int\": 3}, {\"as_int\": 1}]",
                    "\"sizes\": [{\"as_int\": 1099511627776}, {\"as_int\": 3}], \"requires_grad\": true, \"device\": "
                    "{\"type\": \"cpu\", \"index\": null}, \"strides\": [{\"as_int\": 0}, {\"as_int\": 1}]"),
            at + ": 'up.weight' has 3298534883328 elements of an entry of 48 bytes");
  EXPECT_EQ(weights("\"dtype\": 7", "\"dtype\": 0"), at + ".tensor_meta: has no scalar type");
  EXPECT_EQ(weights("\"layout\": 7", "\"layout\": 1"), at + ".tensor_meta: 'up.weight' is not strided");
}

TEST(Pt2Broken, Pickled) {
  EXPECT_EQ(readError(fileBytes(programPath("pickled"))),
            "'test', entry 'data/weights/model_weights_config.json': config.constant: 'constant' is a tensor subclass, "
            "which is pickled: this reader does not unpickle");
  ArchiveFile file = ArchiveFile::of("mlp");
  file["model_constants_config.json"] =
      "{\"config\": {\"queue\": {\"path_name\": \"custom_obj_0\", \"is_param\": false, "
      "\"use_pickle\": true, \"tensor_meta\": null}}}";
  EXPECT_EQ(file.readError(),
            "'test', entry 'data/constants/model_constants_config.json': config.queue: 'queue' is a "
            "custom object (a random generator, perhaps), which is pickled: this reader does not unpickle");
}
