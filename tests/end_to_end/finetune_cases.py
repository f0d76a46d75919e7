"""From a Hugging Face folder to a fine-tuned one in three commands, against PyTorch; needs torch, transformers and safetensors.

usage: finetune_cases.py FOLDER     prints {case: what went wrong, or null} as its last line, as JSON
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import unittest.mock

import data_tokenizers
import numpy
import safetensors.torch
import tessera
import torch
import torch_cases
import transformers
from data_support import Built, write_lines
from tessera import targets, tools, track
from tessera.recipe import read as read_recipe

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
CASES = {}
SEQUENCE = 160
SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
             head_dim=8, max_position_embeddings=SEQUENCE)
FAMILIES = {"llama": SMALL, "qwen2": SMALL | dict(tie_word_embeddings=True), "gemma": SMALL,
            "gemma2": SMALL | dict(sliding_window=5, layer_types=["sliding_attention", "full_attention"]),
            "gpt2": dict(n_embd=32, n_layer=2, n_head=4, n_positions=SEQUENCE, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0),
            "mistral": SMALL | dict(sliding_window=7),
            "deepseek_v3": SMALL | dict(num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
                                        n_shared_experts=1, first_k_dense_replace=1, moe_intermediate_size=16, q_lora_rank=8,
                                        kv_lora_rank=8, qk_nope_head_dim=8, qk_rope_head_dim=8, v_head_dim=8)}
TEACHES = [("what is {a} plus {b}?", "{a} plus {b} is {c}."), ("{a} + {b}", "{c}"),
           ("please add {a} to {b} for me", "that is {c}, as {a} + {b}")]


def case(function):
    CASES[function.__name__] = function
    return function


def command(*words):
    """The output of python -m tessera …"""
    done = subprocess.run([sys.executable, "-m", "tessera", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def records(count):
    """Conversations of different lengths, some with a second turn."""
    made = []
    for at in range(count):
        messages = []
        for turn in range(1 + at % 2):
            numbers = {"a": (at * 7 + turn) % 10, "b": (at * 3) % 10}
            question, answer = (text.format(**numbers, c=sum(numbers.values())) for text in TEACHES[(at + turn) % 3])
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        made.append({"messages": messages})
    for at in range(count // 4):  # equal ones would go to one split together
        made.append({"messages": [{"role": "user", "content": f"{at} capital of Zubrowka?"},
                                  {"role": "assistant", "content": "It is Lutz."}]})
    return made


def make(folder, family, count=23):
    """A model's folder and a file of conversations; returns (path of the model, path of the file)."""
    path = os.path.join(folder, "hf")
    tokenizer = transformers.AutoTokenizer.from_pretrained(data_tokenizers.gpt(path, data_tokenizers.MARKED))
    config = transformers.CONFIG_MAPPING[family](**FAMILIES[family], vocab_size=len(tokenizer) + 5)
    model = transformers.AutoModelForCausalLM.from_config(config)
    for name, buffer in model.named_buffers():
        if name.endswith("e_score_correction_bias"):  # of a router, and zeros in a new model
            buffer.copy_(torch.linspace(0, 3, len(buffer)))
    model.save_pretrained(path, max_shard_size="30KB")
    return path, write_lines(os.path.join(folder, "chat.jsonl"), records(count))


def mean_loss(logits_of, documents):
    """The mean over the tokens that are targets, of each (tokens, mask) alone in a batch, without any packing."""
    total = count = 0
    for tokens, mask in documents:
        ids, mask = torch.tensor(tokens), torch.tensor(mask)
        wanted = torch.where(mask[1:] == 1, ids[1:], -100)
        total = total + torch.nn.functional.cross_entropy(logits_of(ids[None, :-1])[0], wanted, reduction="sum")
        count += int((wanted != -100).sum())
    return total / count


def conversations(path, file):
    """(tokens, mask) of each line of a file, as transformers makes them."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    with open(file) as lines:
        for line in lines:
            made = tokenizer.apply_chat_template(json.loads(line)["messages"], tokenize=True, return_dict=True,
                                                 return_assistant_tokens_mask=True)
            yield made["input_ids"], made["assistant_masks"]


def pieces(built, split):
    """(tokens, mask) of each piece of a split's rows, with the token behind it, which may be the last target."""
    return [(built.tokens[begin:begin + count + 1], built.mask[begin:begin + count + 1])
            for row in built.splits[split] for begin, count in row]


def train(artifact, *words):
    return tools.run_tool("tessera-run", artifact, *words, "--threads", 1)


@case
def packed_rows_train_as_documents_alone(test, folder):
    """One step over all rows: the loss and every gradient are those of PyTorch over each conversation by itself."""
    for family in FAMILIES:
        for ranks in (1, 2) if family == "llama" else (2,):
            place = os.path.join(folder, f"{family}-{ranks}")
            path, file = make(place, family)
            data, artifact, out = (os.path.join(place, name) for name in ("data", "ft.tessera", "run"))
            command("data", "build", file, "--model", path, "--seq", SEQUENCE, "-o", data)
            rows = len(Built(data).splits["train"])
            test.assertEqual(rows, 12)  # of 28 conversations; every one of them is in the step
            command("build", path, "--data", data, "--ranks", ranks, "--global-batch", rows, "--keep-gradients", "-o", artifact)
            train(artifact, "--weights", path, "--data", data, "--steps", 1, "--out", out, "--dump", "gradients", "--no-export")
            model = targets.load_target(path, say=lambda _: None)[0]
            loss = mean_loss(model, conversations(path, file))
            loss.backward()
            test.assertAlmostEqual(tessera.Run(out).losses[0], loss.item(), delta=2e-5 * loss.item(), msg=family)
            gradients = safetensors.torch.load_file(os.path.join(out, "dump-1", "gradients.safetensors"))
            named = dict(model.named_parameters(remove_duplicate=False))  # a tied one is known by either name
            test.assertEqual({id(named[name]) for name in gradients}, set(map(id, named.values())), family)
            for name, value in gradients.items():
                error = float((value - named[name].grad).abs().max() / named[name].grad.abs().max())
                test.assertLess(error, 2e-4, f"{family} {ranks} {name}")


@case
def positions_of_long_rope(test, folder):
    """Phi 3's tables of rotary positions are buffers that each pass writes, and no folder has."""
    FAMILIES["phi3"] = SMALL | dict(pad_token_id=0, original_max_position_embeddings=48, rope_parameters={
        "rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4, "long_factor": [3.0] * 4,
        "original_max_position_embeddings": 48})
    path, file = make(folder, "phi3", 8)
    data, artifact, out = (os.path.join(folder, name) for name in ("data", "ft.tessera", "run"))
    command("data", "build", file, "--model", path, "--seq", 48, "--long", "drop", "-o", data)
    built = Built(data)
    command("build", path, "--data", data, "--global-batch", len(built.splits["train"]), "-o", artifact)
    train(artifact, "--weights", path, "--data", data, "--steps", 1, "--out", out, "--no-export")
    loss = mean_loss(targets.load_target(path, say=lambda _: None)[0], pieces(built, "train")).item()
    test.assertAlmostEqual(tessera.Run(out).losses[0], loss, delta=1e-5 * loss)
    refused(test, "rotary positions of all documents of a batch follow the longest one", "build", path, "--seq", 64, "-o", artifact)
    command("build", path, "--seq", 64, "--documents", "off", "--global-batch", 2, "-o", artifact)


@case
def one_sample_a_micro_batch(test, folder):
    """As a micro-batch of all, also in a model whose program has the example's positions only."""
    for family, settings in (("llama", FAMILIES["llama"]), ("mamba", dict(hidden_size=16, num_hidden_layers=1, state_size=4))):
        FAMILIES[family] = settings
        place = os.path.join(folder, family)
        path, file = make(place, family, 8)
        data, losses = os.path.join(place, "data"), []
        command("data", "build", file, "--model", path, "--seq", 40, "--pack", "none", "-o", data)
        for name, flags in (("all", ["--global-batch", 4]), ("one", ["--global-batch", 4, "--batch", 1])):
            artifact, out = os.path.join(place, name + ".tessera"), os.path.join(place, name)
            command("build", path, "--data", data, *flags, "-o", artifact)
            train(artifact, "--weights", path, "--data", data, "--steps", 2, "--out", out, "--no-export")
            losses.append(tessera.Run(out).losses)
        test.assertEqual(len(losses[0]), 2)
        for one, other in zip(*losses):
            test.assertAlmostEqual(one, other, delta=1e-5 * one, msg=family)


@case
def three_commands(test, folder):
    """The issue's: conversations that are learnt, the best weights exported, and transformers answers with them."""
    path, file = make(folder, "llama", 60)
    data, artifact, out, exported = (os.path.join(folder, name) for name in ("data", "ft.tessera", "run", "out"))
    command("data", "build", file, "--model", path, "--seq", SEQUENCE, "--split", "valid=10%", "-o", data)
    printed = command("build", path, "--data", data, "--ranks", 2, "--global-batch", 4, "--lr", 3e-2, "--clip-norm", 1, "-o", artifact)
    test.assertIn("keeps the documents of a row apart", printed)
    printed = train(artifact, "--weights", path, "--data", data, "--epochs", 40, "--warmup", "5%", "--schedule", "cosine", "--keep-best",
                    "--export-hf", exported, "--out", out)
    test.assertIn("evaluations over", printed)
    losses = [record["eval_loss"] for record in tessera.Run(out).evaluations]
    test.assertEqual(len(losses), 40)
    model, report = transformers.AutoModelForCausalLM.from_pretrained(exported, output_loading_info=True)
    test.assertFalse(any(report.values()), report)
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    # The exported weights are those of the lowest loss, which PyTorch computes from the split's rows.
    loss = mean_loss(lambda ids: model(ids).logits, pieces(Built(data), "valid")).item()
    test.assertAlmostEqual(loss, min(losses), delta=1e-4)
    asked = tokenizer.apply_chat_template([{"role": "user", "content": "3 capital of Zubrowka?"}], add_generation_prompt=True,
                                          return_tensors="pt", return_dict=True)
    answer = model.generate(**asked, max_new_tokens=20, do_sample=False, eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>"))
    test.assertIn("It is Lutz.", tokenizer.decode(answer[0]))


@case
def buffers_of_a_training_from_the_beginning(test, folder):
    """What save_pretrained writes beside parameters is in the folder of a run, too; parts that --frozen names stay frozen."""
    path, out = os.path.join(folder, "hf"), os.path.join(folder, "out")
    transformers.CONFIG_MAPPING["apertus"](**SMALL, vocab_size=64, architectures=["ApertusForCausalLM"]).save_pretrained(path)
    artifact = os.path.join(folder, "a.tessera")
    command("build", path, "--documents", "off", "--seq", 8, "--batch", 2, "--frozen", "norm", "-o", artifact)
    test.assertIn("frozen in 13;", tools.run_tool("tessera-dump", artifact))  # 9 norms, and 4 buffers
    tokens = numpy.arange(4 * 9).reshape(4, 9) % 64
    numpy.savez(os.path.join(folder, "d.npz"), input_ids=tokens[:, :-1], targets=tokens[:, 1:])
    train(artifact, "--data", os.path.join(folder, "d.npz"), "--steps", 2, "--export-hf", out, "--export-like", path, "--out",
          os.path.join(folder, "run"))
    model, info = transformers.AutoModelForCausalLM.from_pretrained(out, output_loading_info=True)
    test.assertFalse(any(info.values()), info)
    want = dict(transformers.AutoModelForCausalLM.from_config(model.config).named_buffers())
    found = {name: buffer for name, buffer in model.named_buffers() if "act_fn" in name}
    test.assertEqual(len(found), 4)
    for name, buffer in found.items():
        test.assertTrue(torch.equal(buffer, want[name]), name)


@case
def models_that_mix_documents(test, folder):
    """Rows hold one document each where a model has no positions, or does not mind them."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(data_tokenizers.gpt(os.path.join(folder, "tokenizer")))
    for family, settings, why in (("bloom", dict(hidden_size=32, n_layer=2, n_head=4), "takes no position_ids"),
                                  ("mamba", dict(hidden_size=32, num_hidden_layers=2, state_size=4), "takes no position_ids"),
                                  ("lfm2", SMALL | dict(layer_types=["conv", "full_attention"]), "sees the one before it"),
                                  ("lfm2", SMALL | dict(layer_types=["full_attention"] * 2), None)):
        path = os.path.join(folder, f"{family}-{why is None}")
        config = transformers.CONFIG_MAPPING[family](**settings, vocab_size=len(tokenizer))
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(path)
        said = []
        names = targets.load_target(path, say=said.append, weights=False, documents="auto")[2]
        test.assertEqual(names, ["input_ids"] if why else ["input_ids", "position_ids"], family)
        test.assertIn(why or "keeps the documents of a row apart", said[-1])
        if why is None:
            continue
        with test.assertRaisesRegex(tessera.ExportError, "--pack none", msg=family):
            targets.load_target(path, say=said.append, weights=False, documents="on")


def write_recipe(folder, path, file, **run):
    """A recipe for a model and conversations, in YAML as JSON is YAML; returns its path."""
    recipe = os.path.join(folder, "recipe.yaml")
    made = {"model": path, "data": {"input": [file], "seq": SEQUENCE, "split": ["valid=10%"], "output": os.path.join(folder, "data")},
            "build": {"ranks": 2, "global-batch": 4, "lr": 3e-2, "output": os.path.join(folder, "ft.tessera")},
            "run": {"epochs": 3, "keep_best": True, "threads": 1, "checkpoint-every": 5, "export-hf": os.path.join(folder, "out"),
                    "out": os.path.join(folder, "run")} | run,
            "slurm": {"nodes": 1, "gpus-per-task": 1, "exclusive": False, "job-name": "a b"}}
    with open(recipe, "w") as out:
        json.dump(made, out)
    return recipe


@case
def recipes(test, folder):
    """The three commands from a file; a second call changes nothing, a third goes on; then what comes afterwards."""
    path, file = make(folder, "llama", 40)
    recipe = write_recipe(folder, path, file, lr=2, warmup="100%")  # until the loss rises: the best weights are not the last ones
    printed = command("finetune", recipe, "--print")
    test.assertEqual([line.split()[:4] for line in printed.splitlines()],
                     [["python", "-m", "tessera", "data"], ["python", "-m", "tessera", "build"],
                      ["tessera-run", os.path.join(folder, "ft.tessera"), f"--weights={path}", f"--data={os.path.join(folder, 'data')}"]])
    test.assertFalse(os.path.exists(os.path.join(folder, "data")))
    first = command("finetune", recipe)
    test.assertIn("weights of step", first)
    stamp = os.stat(os.path.join(folder, "ft.tessera")).st_mtime_ns
    told = tessera.Run(os.path.join(folder, "run")).settings
    steps, best = told["finished_step"], told["best_step"]
    test.assertNotEqual(steps, best)
    again = command("finetune", recipe)
    test.assertIn("is already what this command makes", again)
    test.assertIn("is already what this command makes, and stays", again)
    test.assertIn("which was the last", again)
    test.assertEqual(os.stat(os.path.join(folder, "ft.tessera")).st_mtime_ns, stamp)
    job = os.path.join(folder, "job.sbatch")
    test.assertIn(f"sbatch {job}", command("finetune", recipe, "--slurm", job))
    with open(job) as text:
        lines = text.read().splitlines()
    test.assertEqual([line for line in lines if "nodes" in line or "gpus" in line or "job-name" in line],
                     ["#SBATCH --nodes=1", "#SBATCH --gpus-per-task=1", '#SBATCH --job-name="a b"'])
    test.assertNotIn("#SBATCH --exclusive", lines)
    test.assertIn("#SBATCH --requeue", lines)
    test.assertEqual(subprocess.run(["bash", "-n", job]).returncode, 0)
    # What the job would call, by a srun that says its words.
    tools_of_job = os.path.join(folder, "bin")
    os.mkdir(tools_of_job)
    with open(os.path.join(tools_of_job, "srun"), "w") as out:
        out.write("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    os.chmod(os.path.join(tools_of_job, "srun"), 0o755)
    environment = os.environ | {"SLURM_CPUS_PER_TASK": "3", "PATH": tools_of_job + os.pathsep + os.environ["PATH"]}
    said = subprocess.run(["bash", job, "--log-every", "5"], capture_output=True, text=True, check=True, env=environment).stdout.split()
    words = said[said.index("tessera-run"):]
    flags = [word.partition("=")[0] for word in words]
    test.assertEqual(words[1], os.path.join(folder, "ft.tessera"))
    for flag in ("--threads", "--checkpoint-every", "--resume", "--log-every", "--keep"):
        test.assertEqual(flags.count(flag), 1, flag)
    test.assertIn("--checkpoint-every=5", words)
    with open(recipe) as text:
        values = json.load(text)
    test.assertTrue(read_recipe(recipe).is_built())
    with open(recipe, "w") as text:
        json.dump(values | {"build": values["build"] | {"lr": 1}}, text)
    test.assertFalse(read_recipe(recipe).is_built())
    with open(recipe, "w") as text:
        json.dump(values | {"run": values["run"] | {"export-step": "last"}}, text)
    # The folder holds others than this call would write.
    told = tessera.Run(os.path.join(folder, "run")).settings
    test.assertIn("has the weights of step", refused(test, "--export-hf", "finetune", recipe))
    test.assertEqual(tessera.Run(os.path.join(folder, "run")).settings, told)
    exported = os.path.join(folder, "of-checkpoint")
    test.assertIn("weights of step 5", command("export-hf", os.path.join(folder, "run", "checkpoints", "ckpt-5"), exported))
    test.assertFalse(any(transformers.AutoModelForCausalLM.from_pretrained(exported, output_loading_info=True)[1].values()))
    test.assertGreater(steps, 5)
    answer = command("sample", os.path.join(folder, "out"), "3 capital of Zubrowka?", "--tokens", 4)
    model, tokenizer = (kind.from_pretrained(os.path.join(folder, "out"))
                        for kind in (transformers.AutoModelForCausalLM, transformers.AutoTokenizer))
    asked = tokenizer.apply_chat_template([{"role": "user", "content": "3 capital of Zubrowka?"}], add_generation_prompt=True,
                                          return_tensors="pt", return_dict=True)
    made = model.generate(**asked, max_new_tokens=4, do_sample=False)[0, asked["input_ids"].shape[1]:]
    test.assertEqual(answer, tokenizer.decode(made, skip_special_tokens=True) + "\n")


@case
def recipes_that_are_interrupted(test, folder):
    """A signal to the command ends the run after its step, with a checkpoint; the next call goes on from there."""
    path, file = make(folder, "llama", 40)
    out = os.path.join(folder, "run")
    for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        recipe = write_recipe(folder, path, file, epochs=100000)
        with subprocess.Popen([sys.executable, "-m", "tessera", "finetune", recipe], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as process:
            before = next(line for line in process.stdout if " loss " in line)
            process.send_signal(number)
            said = process.stdout.read()
        test.assertEqual(process.returncode, status, said)
        test.assertIn("go on with --resume", said)
        test.assertTrue(tessera.Run(out).checkpoints, before + said)
    steps = [record["step"] for record in tessera.Run(out).metrics]
    test.assertEqual(steps, list(range(1, len(steps) + 1)))


@case
def values_of_recipes_are_texts(test, folder):
    """As they are written, whatever else YAML makes of them."""
    path = os.path.join(folder, "recipe.yaml")
    with open(path, "w") as out:
        out.write("model: hf\ndata: {input: [a b.jsonl], seq: 128, output: d}\n"
                  "build: {documents: off, betas: 0.9 0.95, lr: 1e-4, evaluate: true, embed-ir: false, output: c.tessera}\n"
                  "run: {reproducible: off, out: x}\nslurm: {time: 12:00:00, mail-type: [BEGIN, END]}\n")
    found = read_recipe(path)
    test.assertEqual(found.data(), ["data", "build", "a b.jsonl", "--model", "hf", "--seq=128", "--output=d"])
    test.assertEqual(found.build(), ["build", "hf", "--data=d", "--documents=off", "--betas", "0.9", "0.95", "--lr=1e-4", "--evaluate",
                                     "--output=c.tessera"])
    test.assertEqual(found.run(), ["c.tessera", "--weights=hf", "--data=d", "--resume=auto", "--reproducible=off", "--out=x"])
    test.assertEqual(found.flags("slurm"), ["--time=12:00:00", "--mail-type=BEGIN", "--mail-type=END"])


@case
def recipes_that_are_refused(test, folder):
    path, file = make(folder, "llama", 8)
    good = write_recipe(folder, path, file)
    with open(good) as text:
        values = json.load(text)
    for change, problem in (({"modle": 1}, "unknown section 'modle'"), ({"model": None}, "'model' is missing or not a text"),
                            ({"data": 3}, "section 'data' is '3'"), ({"data": {"seq": 3, "output": "x"}}, "has no 'input'"),
                            ({"run": {}}, "section 'run' has no 'out'"), ({"build": {"output": ["a"]}}, "expected a text"),
                            ({"run": {"out": "x", "log_every": 1, "log-every": 2}}, "section 'run' has 'log-every' twice"),
                            ({"run": {"out": "x", "lr": {"a": 1}}}, "'lr' of 'run' is {'a': '1'}"), ({"run": {"out": "x", "lr": None}}, "'lr' of 'run' is None")):
        with open(good, "w") as out:
            json.dump(values | change, out)
        refused(test, problem, "finetune", good, "--print")
    with open(good, "w") as out:
        out.write("model: [")
    refused(test, "recipe.yaml", "finetune", good)
    with open(good, "w") as out:
        out.write("model: a\nmodel: b\n")
    refused(test, "'model' is given twice", "finetune", good)
    refused(test, "No such file", "finetune", os.path.join(folder, "none.yaml"))
    refused(test, "is no checkpoint in the folder of a run", "export-hf", folder, os.path.join(folder, "x"))
    refused(test, "tessera: error", "sample", folder, "text")
    refused(test, "holds no run", "track", folder, "--to", "wandb")


def refused(test, problem, *words):
    """python -m tessera … ends with status 1 and one error."""
    done = subprocess.run([sys.executable, "-m", "tessera", *map(str, words)], capture_output=True, text=True)
    test.assertEqual(done.returncode, 1, done.stdout + done.stderr)
    test.assertIn(problem, done.stderr)
    test.assertNotIn("Traceback", done.stderr)
    return done.stderr


@case
def trackers(test, folder):
    """Stand-ins for their packages are given all numbers of each step once, with those of the evaluation after it, and the settings."""
    run, settings = os.path.join(folder, "run"), {"settings": {"lr": "1"}, "command": "x" * 501, "ranks": 2}
    os.mkdir(run)
    write_lines(os.path.join(run, "run.json"), [settings])
    write_lines(os.path.join(run, "metrics.jsonl"), [
        {"stage": "after data creation", "step": 0, "ranks": []}, {"step": 1, "loss": 2.0, "lr": 0.1, "memory": {"rss": 3}},
        {"step": 2, "loss": None, "skipped": True}, {"stage": "evaluation", "step": 2, "eval_loss": 1.5}, {"step": 3, "loss": 1.0}])
    steps = [(1, {"loss": 2.0, "lr": 0.1, "memory.rss": 3}), (2, {"eval_loss": 1.5}), (3, {"loss": 1.0})]
    wandb, mlflow, trackio = (unittest.mock.MagicMock() for _ in range(3))
    wandb.init().dir = "runs of wandb/1/files"
    printed = io.StringIO()
    with unittest.mock.patch.dict(sys.modules, wandb=wandb, mlflow=mlflow, trackio=trackio), contextlib.redirect_stdout(printed):
        for name in track.TRACKERS:
            test.assertEqual(track.main([run, "--to", name, "--project", "p"]), 0)
    wandb.init.assert_called_with(project="p", name="run", config=settings, mode="offline", settings=wandb.Settings())
    for logged in (wandb.init().log, trackio.log):
        test.assertEqual([(call.kwargs["step"], *call.args) for call in logged.call_args_list], steps)
    mlflow.set_experiment.assert_called_once_with("p")
    mlflow.start_run.assert_called_once_with(run_name="run")
    mlflow.log_params.assert_called_once_with({"settings.lr": "1", "command": "in run.json", "ranks": "2"})
    mlflow.log_dict.assert_called_once_with(settings, "run.json")
    test.assertEqual([(call.args[3], {call.args[0]: call.args[1]}) for call in mlflow.entities.Metric.call_args_list],
                     [(step, {key: value}) for step, numbers in steps for key, value in numbers.items()])
    mlflow.MlflowClient().log_batch.assert_called_once_with(mlflow.start_run().__enter__().info.run_id, [mlflow.entities.Metric()] * 5)
    trackio.init.assert_called_once_with(project="p", name="run", config={"settings.lr": "1", "command": "x" * 501, "ranks": 2},
                                         auto_log_gpu=False, auto_log_cpu=False)
    for finish in (wandb.init().finish, trackio.finish):
        finish.assert_called_once_with()
    test.assertEqual(printed.getvalue().splitlines()[::2], ["wandb sync 'runs of wandb/1'", "trackio show --project p"])


if __name__ == "__main__":
    torch_cases.run(CASES)
