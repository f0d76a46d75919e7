"""Folders of Hugging Face, read and written by runs; needs torch, transformers and safetensors.

usage: hugging_face_cases.py FOLDER     prints {case: what went wrong, or null} as its last line, as JSON
"""

import fcntl
import glob
import json
import math
import os
import random
import socket
import subprocess
import unittest

import numpy
import tessera
import torch
import torch_cases
import transformers
from tessera import targets, tools, weight_map
from tessera.rearranged import NotMoved, Rearranged

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
CASES = {}
SEQUENCE, VOCABULARY = 8, 64
SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
             vocab_size=VOCABULARY, head_dim=8)
FAMILIES = {
    "llama": dict(SMALL), "qwen2": dict(SMALL, tie_word_embeddings=True), "gemma": dict(SMALL),
    "gpt2": dict(n_embd=32, n_layer=2, n_head=4, vocab_size=VOCABULARY, n_positions=16, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
    "qwen3_moe": dict(SMALL, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, decoder_sparse_step=1),
    "t5": dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=VOCABULARY, dropout_rate=0.0)}


def case(function):
    CASES[function.__name__] = function
    return function


def made(family, **settings):
    torch.manual_seed(0)
    config = transformers.CONFIG_MAPPING[family](**FAMILIES[family], **settings)
    return loader(family).from_config(config)


def loader(family):
    return transformers.AutoModelForSeq2SeqLM if family == "t5" else transformers.AutoModelForCausalLM


def program(folder, path, **options):
    """Exports the model of a folder without its weights; returns (the module with its weights, inputs)."""
    module, inputs, names = targets.load_target(f"hf:{folder}", say=lambda _: None, weights=False)
    tessera.export(module, inputs).save(path)
    return targets.load_target(f"hf:{folder}", say=lambda _: None)[0], names


def batch(names, samples=4):
    generator = torch.Generator().manual_seed(1)
    return {name: torch.randint(3, VOCABULARY, (samples, SEQUENCE), generator=generator) for name in [*names, "targets"]}


def train_twin(module, data, steps, lr):
    """The losses of SGD in PyTorch."""
    module.train()
    optimizer, losses = torch.optim.SGD(module.parameters(), lr), []
    for _ in range(steps):
        optimizer.zero_grad()
        logits = module(*[data[name] for name in data if name != "targets"])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), data["targets"].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run(artifact, *words, environment=()):
    return subprocess.Popen([tools.find_tool("tessera-run"), artifact, *map(str, words)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=os.environ | dict(environment))


def finish(test, *processes):
    for process in processes:
        output = process.communicate(timeout=120)[0]
        test.assertEqual(process.returncode, 0, output)
    return output


def read_files(folder):
    """{file: {tensor: values}} of a folder."""
    from safetensors.torch import load_file
    return {os.path.basename(path): load_file(path) for path in weight_map.weight_files(folder)}


def check_loaded(test, family, out, twin):
    """A folder is read by transformers as a whole, and computes what the twin does."""
    loaded, info = loader(family).from_pretrained(out, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        test.assertFalse(info.get(kind), kind)
    inputs = [torch.arange(2 * SEQUENCE).reshape(2, SEQUENCE) % VOCABULARY] * (2 if family == "t5" else 1)
    names = ("input_ids", "decoder_input_ids")
    with torch.no_grad():
        got = loaded.eval()(**dict(zip(names, inputs))).logits
        want = twin.eval()(*inputs)
    test.assertLess((got - want).abs().max().item(), 1e-5 * max(1, want.abs().max().item()))


def check_folder(test, family, out, source, twin):
    """A folder is what check_loaded wants, and has the files of its source."""
    check_loaded(test, family, out, twin)
    made, was = read_files(out), read_files(source)
    test.assertEqual({file: sorted(tensors) for file, tensors in made.items()}, {file: sorted(tensors) for file, tensors in was.items()})
    test.assertTrue(any(not torch.equal(tensor, was[file][name]) for file, tensors in made.items() for name, tensor in tensors.items()))
    for name in ("config.json", "generation_config.json"):
        with open(os.path.join(out, name)) as one, open(os.path.join(source, name)) as other:
            test.assertEqual(one.read(), other.read())


@case
def families(test, folder):
    """On one rank, on four threads that hold a part each, and on two processes: the losses of a twin, and a folder like the first."""
    for family in FAMILIES:
        source, path = os.path.join(folder, family), os.path.join(folder, family + ".pt2")
        made(family).save_pretrained(source, max_shard_size="20KB")
        test.assertGreater(len(weight_map.weight_files(source)), 3)
        module, names = program(source, path)
        data = batch(names)
        numpy.savez(os.path.join(folder, family + ".npz"), **{name: tensor.numpy() for name, tensor in data.items()})
        losses = train_twin(module, data, 3, 0.5)
        for ranks, processes in ((1, 1), (4, 1), (2, 2)):
            with test.subTest(family, ranks=ranks, processes=processes):
                artifact, out = os.path.join(folder, f"{family}-{ranks}.tessera"), os.path.join(folder, f"{family}-{ranks}")
                tessera.compile(path, artifact, batch=4, seq=SEQUENCE, mesh={"shard": ranks}, strategy="zero3", optimizer="sgd", lr=0.5,
                                weight_decay=0)
                words = ["--data", os.path.join(folder, family + ".npz"), "--order", "sequential", "--steps", 3, "--weights", source,
                         "--out", out + "-run", "--export-hf", out]
                port = free_port()
                finish(test, *(run(artifact, *words, environment=() if processes == 1 else {
                    "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
                    for rank in range(processes)))
                got = tessera.Run(out + "-run").losses
                for loss, want in zip(got, losses):
                    test.assertLess(abs(loss - want), 1e-5 * want)
                check_folder(test, family, out, source, module)
                test.assertFalse(os.path.exists(os.path.join(out + "-run", "model.safetensors")))
                test.assertEqual(glob.glob(os.path.join(folder, "*.tmp-*")), [])


@case
def trainings_from_the_beginning(test, folder):
    """A folder has a configuration alone: what a run leaves is a whole model, as the twin's that began with the same weights."""
    for family in FAMILIES:
        source, path, out = (os.path.join(folder, family + end) for end in ("", ".pt2", "-out"))
        made(family).config.save_pretrained(source)
        module, inputs, names = targets.load_target(f"hf:{source}", say=lambda _: None)
        tessera.export(module, inputs).save(path)
        data = batch(names)
        numpy.savez(os.path.join(folder, family + ".npz"), **{name: tensor.numpy() for name, tensor in data.items()})
        losses = train_twin(module, data, 3, 0.5)
        tessera.compile(path, path + ".tessera", batch=4, seq=SEQUENCE, mesh={"shard": 2}, strategy="zero3", optimizer="sgd", lr=0.5,
                        weight_decay=0)
        finish(test, run(path + ".tessera", "--data", os.path.join(folder, family + ".npz"), "--order", "sequential", "--steps", 3,
                         "--out", out + "-run", "--export-hf", out, "--export-like", source))
        for loss, want in zip(tessera.Run(out + "-run").losses, losses, strict=True):
            test.assertLess(abs(loss - want), 1e-5 * want)
        check_loaded(test, family, out, module)
        test.assertEqual([os.path.basename(each) for each in weight_map.weight_files(out)], ["model.safetensors"])


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@case
def types_and_checkpoints(test, folder):
    """A folder of bf16 stays one; a checkpoint is written later, in another type; averages beside."""
    source, path, artifact = (os.path.join(folder, name) for name in ("source", "m.pt2", "m.tessera"))
    made("llama").to(torch.bfloat16).save_pretrained(source)
    _, names = program(source, path)
    numpy.savez(os.path.join(folder, "data.npz"), **{name: tensor.numpy() for name, tensor in batch(names).items()})
    tessera.compile(path, artifact, batch=4, seq=SEQUENCE, mesh={"shard": 2}, strategy="zero3", ema=0.9)
    finish(test, run(artifact, "--data", os.path.join(folder, "data.npz"), "--steps", 2, "--weights", source, "--checkpoint-every", 1,
                     "--out", os.path.join(folder, "run"), "--export-hf", os.path.join(folder, "out")))
    # Started again by a script, with nothing left to do.
    output = finish(test, run(artifact, "--data", os.path.join(folder, "data.npz"), "--steps", 2, "--weights", source, "--resume", "auto",
                              "--checkpoint-every", 1, "--out", os.path.join(folder, "run"), "--export-hf", os.path.join(folder, "out")))
    test.assertIn("out, as the run before left it", output)
    for name in ("out", "out-average"):
        loaded = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(folder, name), dtype="auto")
        test.assertEqual(loaded.dtype, torch.bfloat16)
    for step in (1, 2):
        out = os.path.join(folder, f"at-{step}")
        finish(test, run(artifact, "--export-only", "--resume", os.path.join(folder, "run", "checkpoints", f"ckpt-{step}"),
                         "--export-hf", out, "--export-like", source, "--export-dtype", "f32"))
        test.assertEqual({tensor.dtype for tensors in read_files(out).values() for tensor in tensors.values()}, {torch.float32})
        with open(os.path.join(out, "config.json")) as file:
            test.assertEqual(json.load(file)["dtype"], "float32")
    # The run remembers the folder; what a process that was killed has left beside goes, and what another one writes does not.
    left, other = (os.path.join(folder, f"again.tmp-0123456789abcdef-{number}") for number in (1, 2))
    for each in (left, other):
        os.mkdir(each)
        open(os.path.join(each, ".writing"), "w").close()
    with open(os.path.join(other, ".writing")) as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        finish(test, run(artifact, "--export-only", "--resume", os.path.join(folder, "run"), "--export-hf", os.path.join(folder, "again")))
        test.assertEqual([os.path.exists(each) for each in (left, other)], [False, True])
    test.assertEqual(sorted(os.listdir(os.path.join(folder, "again"))), sorted(os.listdir(source)))
    last, before, half = (read_files(os.path.join(folder, name))["model.safetensors"] for name in ("at-2", "at-1", "out"))
    name = "model.layers.0.mlp.up_proj.weight"
    test.assertFalse(torch.equal(last[name], before[name]))
    test.assertTrue(torch.equal(last[name].bfloat16(), half[name]))


@case
def wrapped_and_without_prefix(test, folder):
    """A module of the user's own around a model, and files of the model without its head."""
    class Wrapped(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.inner, self.more = model, torch.nn.Linear(VOCABULARY, 3)

        def forward(self, input_ids):
            return self.more(self.inner(input_ids=input_ids, use_cache=False).logits)
    source = os.path.join(folder, "base")
    model = made("gpt2")
    model.transformer.save_pretrained(source)  # names without "transformer."
    test.assertIn("wte.weight", read_files(source)["model.safetensors"])
    module = Wrapped(model)
    path, artifact = os.path.join(folder, "wrapped.pt2"), os.path.join(folder, "wrapped.tessera")
    tessera.export(module, (torch.randint(3, VOCABULARY, (4, SEQUENCE)),)).save(path)
    data = batch(["input_ids"])
    data["targets"] = data["targets"] % 3
    numpy.savez(os.path.join(folder, "data.npz"), **{name: tensor.numpy() for name, tensor in data.items()})
    tessera.compile(path, artifact, batch=4, seq=SEQUENCE, flags=["--init", "^more=zeros"])
    words = ["--data", os.path.join(folder, "data.npz"), "--steps", 1, "--weights", source, "--out", os.path.join(folder, "run")]
    failed = run(artifact, *words)
    output = failed.communicate(timeout=60)[0]
    test.assertNotEqual(failed.returncode, 0)
    test.assertIn("missing: 'more.weight', 'more.bias'", output)
    output = finish(test, run(artifact, *words, "--weights-partial", "^more"))
    test.assertRegex(output, r"initial values: 28 tensors of .*; by rule \(seed 0\): 0 for 2 \(more")
    test.assertLess(abs(tessera.Run(os.path.join(folder, "run")).losses[0] - math.log(3)), 1e-5)
    failed = run(artifact, *words, "--weights-partial", "^mroe")
    test.assertIn("--weights-partial matches no parameter", failed.communicate(timeout=60)[0])


@case
def peft_loads_adapters(test, folder):
    """On the base model, with the logits of the merged one; beside matrices that are trained themselves, too."""
    try:
        import peft
    except ImportError as why:
        raise unittest.SkipTest(str(why)) from why
    for family, lora in (("llama", "rank=2,alpha=4,targets=q_proj|up_proj"), ("gpt2", "rank=3,alpha=2,targets=c_attn|c_proj"),
                         ("llama", "rank=2,alpha=4,targets=v_proj,train=lm_head|norm")):
        place = os.path.join(folder, f"{family}-{len(lora)}")
        source, path, artifact = (os.path.join(place, name) for name in ("source", "m.pt2", "m.tessera"))
        made(family).save_pretrained(source)
        _, names = program(source, path)
        numpy.savez(os.path.join(place, "data.npz"), **{name: tensor.numpy() for name, tensor in batch(names).items()})
        tessera.compile(path, artifact, batch=4, seq=SEQUENCE, mesh={"shard": 2}, strategy="zero3", lr=0.1, lora=lora)
        finish(test, run(artifact, "--data", os.path.join(place, "data.npz"), "--steps", 3, "--weights", source, "--export-lora", "both",
                         "--out", os.path.join(place, "run"), "--export-hf", os.path.join(place, "merged")))
        tokens = torch.randint(3, VOCABULARY, (2, SEQUENCE), generator=torch.Generator().manual_seed(2))
        with torch.no_grad():
            base = loader(family).from_pretrained(source).eval()
            before = base(tokens).logits
            adapted = peft.PeftModel.from_pretrained(base, os.path.join(place, "merged-adapter")).eval()(tokens).logits
            merged = loader(family).from_pretrained(os.path.join(place, "merged")).eval()(tokens).logits
        test.assertLess(float((adapted - merged).abs().max()), 1e-5, f"{family} {lora}")
        test.assertGreater(float((before - merged).abs().max()), 1e-2, f"{family} {lora}")


@case
def adapters(test, folder):
    """Names of modules are the model's own, and merged weights are a folder."""
    source, path, artifact = (os.path.join(folder, name) for name in ("source", "m.pt2", "m.tessera"))
    made("llama").save_pretrained(source, max_shard_size="20KB")
    _, names = program(source, path)
    numpy.savez(os.path.join(folder, "data.npz"), **{name: tensor.numpy() for name, tensor in batch(names).items()})
    tessera.compile(path, artifact, batch=4, seq=SEQUENCE, mesh={"shard": 2}, strategy="zero3", lr=0.1,
                    lora="rank=2,alpha=4,targets=q_proj|up_proj")
    words = ["--data", os.path.join(folder, "data.npz"), "--steps", 2, "--weights", source]
    finish(test, run(artifact, *words, "--out", os.path.join(folder, "a"), "--export-hf", os.path.join(folder, "peft")))
    with open(os.path.join(folder, "peft", "adapter_config.json")) as file:
        config = json.load(file)
    test.assertIn("model.layers.0.mlp.up_proj", config["target_modules"])
    test.assertEqual(config["base_model_name_or_path"], source)
    from safetensors.torch import load_file
    pairs = load_file(os.path.join(folder, "peft", "adapter_model.safetensors"))
    finish(test, run(artifact, *words, "--out", os.path.join(folder, "b"), "--export-hf", os.path.join(folder, "merged"),
                     "--export-lora", "merged"))
    merged = loader("llama").from_pretrained(os.path.join(folder, "merged")).state_dict()
    base = loader("llama").from_pretrained(source).state_dict()
    for name, tensor in base.items():
        module = f"base_model.model.{name.removesuffix('.weight')}"
        if f"{module}.lora_A.weight" in pairs:
            tensor = tensor + 2 * pairs[f"{module}.lora_B.weight"] @ pairs[f"{module}.lora_A.weight"]
        test.assertLess((merged[name] - tensor).abs().max().item(), 1e-6, name)
    test.assertFalse(torch.equal(merged["model.layers.0.mlp.up_proj.weight"], base["model.layers.0.mlp.up_proj.weight"]))
    both = os.path.join(folder, "c", "both")  # in the run's own folder, which is made
    finish(test, run(artifact, *words, "--out", os.path.join(folder, "c"), "--export-hf", both, "--export-lora", "both"))
    test.assertEqual(sorted(os.listdir(both + "-adapter")), ["adapter_config.json", "adapter_model.safetensors"])
    test.assertTrue(all(torch.equal(tensor, merged[name]) for file in read_files(both).values() for name, tensor in file.items()))
    made("gpt2").save_pretrained(os.path.join(folder, "other"))
    for problem, flags in (("--export-dtype is of whole models", ["--export-dtype", "bf16"]),
                           ("is not one of this model", ["--export-like", os.path.join(folder, "other")])):
        refused = run(artifact, *words, "--out", os.path.join(folder, "d"), "--export-hf", os.path.join(folder, "no"), *flags)
        test.assertIn(problem, refused.communicate(timeout=60)[0])
        test.assertEqual(refused.returncode, 1)


@case
def folders_that_do_not_fit(test, folder):
    source, path, artifact = (os.path.join(folder, name) for name in ("source", "m.pt2", "m.tessera"))
    made("llama").save_pretrained(source, max_shard_size="20KB")
    made("gpt2").save_pretrained(os.path.join(folder, "other"))
    _, names = program(source, path)
    numpy.savez(os.path.join(folder, "data.npz"), **{name: tensor.numpy() for name, tensor in batch(names).items()})
    tessera.compile(path, artifact, batch=4, seq=SEQUENCE)

    def refused(words, *flags):
        process = run(artifact, "--data", os.path.join(folder, "data.npz"), "--steps", 1, "--out", os.path.join(folder, "run"), *flags)
        output = process.communicate(timeout=60)[0]
        with test.subTest(words):
            test.assertEqual(process.returncode, 1, output)
            test.assertIn(words, output)
            test.assertFalse(os.path.exists(os.path.join(folder, "out")))
    refused("is what the run makes itself", "--weights", source, "--export-hf", os.path.join(folder, "run"))
    refused("is what the run makes itself", "--weights", source, "--export-hf", os.path.join(folder, "run", "metrics.jsonl"))
    refused("is among checkpoints", "--weights", source, "--export-hf", os.path.join(folder, "run", "checkpoints", "ckpt-9"))
    out = ["--export-hf", os.path.join(folder, "out")]
    refused("do not fit the program; missing: ", "--weights", os.path.join(folder, "other"))
    refused("is not one of this model: it has no tensor for ", "--weights", source, *out, "--export-like", os.path.join(folder, "other"))
    refused("exists; remove it or name another folder", "--weights", source, "--export-hf", source)
    refused("there is no folder", "--weights", source, "--export-hf", os.path.join(folder, "no", "out"))
    refused("name one of this model by --export-like", "--weights", "fresh", *out)
    shard = weight_map.weight_files(source)[1]
    with open(shard, "rb") as file:
        content = file.read()
    with open(shard, "wb") as file:
        file.write(content[:-4])
    refused("is not a valid safetensors file", "--weights", source)
    os.remove(shard)
    refused("which '", "--weights", source)


@case
def quantised_folders_are_refused(test, folder):
    made("llama").save_pretrained(folder)
    path = os.path.join(folder, "config.json")
    with open(path) as file:
        config = json.load(file)
    with open(path, "w") as file:
        json.dump(config | {"quantization_config": {"quant_method": "gptq", "bits": 4}}, file)
    with test.assertRaisesRegex(tessera.ExportError, "its weights are quantised"):
        targets.load_target(f"hf:{folder}", say=lambda _: None, weights=False)


@case
def a_conversion_that_is_not_understood(test, folder):
    """Leaves no map, and says why where it is needed."""
    model = made("llama")
    model._weight_conversions = None
    real = transformers.core_model_loading.revert_weight_conversion
    transformers.core_model_loading.revert_weight_conversion = lambda model, tensors: {name: tensor * 2 for name, tensor in tensors.items()}
    try:
        note, _ = weight_map.note_of(model)
    finally:
        transformers.core_model_loading.revert_weight_conversion = real
    test.assertIn("more than moving elements", note["refused"])


@case
def rearranged_tensors(test, folder):
    """Operators that move elements give the same as on numbers."""
    def realize(tensor, sources):
        result = torch.full((math.prod(tensor.shape),), -1)
        for piece in tensor.pieces:
            own, other = torch.tensor([piece.offset]), torch.tensor([piece.source_offset])
            for loop in piece.loops:
                turns = torch.arange(loop.size)
                own, other = ((at[:, None] + turns * stride).flatten() for at, stride in ((own, loop.stride), (other, loop.source_stride)))
            test.assertTrue((result[own] == -1).all())
            result[own] = sources[piece.source].flatten()[other]
        return result.reshape(tensor.shape)

    generator, refused = random.Random(0), 0
    for _ in range(600):
        sources = {}

        def new(shape):
            name = f"s{len(sources)}"
            sources[name] = torch.arange(math.prod(shape)).reshape(shape) + 10000 * len(sources)
            return torch.stack, Rearranged.of(name, shape), sources[name]
        _, a, b = new([generator.choice([1, 2, 3, 4, 6]) for _ in range(generator.randint(1, 3))])
        try:
            for _ in range(generator.randint(1, 5)):
                kind = generator.choice(["permute", "reshape", "narrow", "chunk", "cat", "stack", "squeeze", "unbind"])
                axis = generator.randrange(max(b.dim(), 1))
                if kind == "reshape":
                    first = generator.choice([size for size in range(1, b.numel() + 1) if b.numel() % size == 0])
                    a, b = a.reshape(first, -1), b.reshape(first, -1)
                elif kind == "squeeze" or b.dim() == 0:
                    a, b = a.squeeze(), b.squeeze()
                elif kind == "permute":
                    order = generator.sample(range(b.dim()), b.dim())
                    a, b = a.permute(order), b.permute(order)
                elif kind == "narrow":
                    begin = generator.randrange(b.shape[axis])
                    count = generator.randint(1, b.shape[axis] - begin)
                    a, b = a.narrow(axis, begin, count), b.narrow(axis, begin, count)
                elif kind in ("chunk", "unbind"):
                    a, b = ((torch.chunk(each, 2, axis) if kind == "chunk" else torch.unbind(each, axis))[-1] for each in (a, b))
                else:
                    _, more, numbers = new(tuple(b.shape))
                    join = torch.cat if kind == "cat" else torch.stack
                    a, b = join([a, more], axis), join([b, numbers], axis)
        except NotMoved:
            refused += 1
            continue
        test.assertTrue(torch.equal(realize(a, sources), b))
    test.assertLess(refused, 30)
    for wrong in (lambda x: x + 1, lambda x: torch.cat([x, torch.zeros(2, 3)]), lambda x: x[::2]):
        with test.assertRaises(NotMoved):
            wrong(Rearranged.of("x", (2, 3)))


if __name__ == "__main__":
    torch_cases.run(CASES)
