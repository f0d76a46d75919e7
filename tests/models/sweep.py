#!/usr/bin/env python3
"""Exports, compiles and trains every causal language model of the installed transformers, small, and compares with
PyTorch.

usage: sweep.py [--only REGEX] [--entrance onnx|pt2] [--resume] [--results FILE] [--table docs/models.md] [--jobs 2]

Each family of transformers' MODEL_FOR_CAUSAL_LM_MAPPING is made with random weights (shrink.py) without a padding
token, with the weights as they are initialized, and with one (id 0), with noise added so that no weight is special. It
is exported as python -m tessera export does and trained for three AdamW steps, on one rank and with ZeRO-3 on two; losses
and every gradient of the first step must be PyTorch's (frontends/python/tessera/compare.py). Results go to a file of JSON
lines as they come. --table makes the page of what is there.

--entrance pt2 goes in by torch.export and .pt2 instead, with a padding token and noise, and without where
a family cannot be made with one.

Exit status: 0; 1 if a model trains otherwise than in PyTorch, or could not be tried to the end.
"""

import argparse
import datetime
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "frontends", "python")]
BATCH, SEQUENCE, STEPS = 4, 16, 3


def families():
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return dict(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def build(family, pad):
    """(module, inputs, names) of a family with random weights, and one run of it."""
    import shrink
    import torch
    from tessera import targets
    torch.manual_seed(0)
    model, inputs, names = targets.load_hugging_face(family, shrink.family_settings(family, pad), BATCH, SEQUENCE,
                                                     say=lambda text: None)
    model(*inputs)
    return model, inputs, names


def needs_padding(family, pad):
    """Whether a family that cannot be made without a padding token can be made with one."""
    try:
        return pad is None and bool(build(family, 0))
    except Exception:  # as above
        return False


def run_case(family, pad, entrance, folder):
    """The result of one case, a dictionary for the file of results."""
    from catalogue.running import RANKS
    from tessera import training
    from tessera.check import Check
    from tessera.errors import CannotCompare, ExportError
    result = {}
    try:
        try:
            model, inputs, names = build(family, pad)
        except Exception as why:  # configurations and models check themselves with all kinds of exceptions
            reason = "the family needs a padding token" if needs_padding(family, pad) else line_of(why)
            raise CannotCompare("model", reason) from why
        result |= {"class": type(model.model).__name__, "parameters": sum(p.numel() for p in model.parameters())}
        if pad is not None:
            training.perturb(model)
        check = Check(model, inputs, names, folder, steps=STEPS, timeout=120, via=entrance)
        check.export()
        result["exporter"] = check.exporter
        for name, flags in RANKS.items():
            verdict = check.run(flags, name.replace(" ", "-"))
            result[name] = verdict.summary()
            result[name].pop("gradient_differences") if verdict.same else None
        result["result"] = "same" if all(result[name]["result"] == "same" for name in RANKS) else "DIFFERENT"
    except (CannotCompare, ExportError) as why:
        result |= {"result": "refused", "stage": getattr(why, "stage", "model"),
                   "reason": getattr(why, "short", str(why)), "message": str(why)[:4000]}
        if any(result.get(name, {}).get("result") == "DIFFERENT" for name in RANKS):
            result["result"] = "DIFFERENT"
    return result


def run_or_copy(case, known, done, pool):
    """Starts a case, unless it would end as the case before of its family did."""
    family, pad, entrance = case
    if entrance == "pt2":
        while pad is None and (family, 0, entrance) not in known:
            pool.wait()
        if pad == 0 or known[family, 0, entrance].get("stage") == "model":
            pool.start(case)
        return
    first = known.get((family, None, entrance), {})
    if pad is not None and first.get("stage") in ("export", "compile", "check"):  # an op is missing, or time, either way
        same = {key: first[key] for key in ("class", "parameters", "result", "stage") if key in first}
        done(case, {**same, "reason": "as without a padding token"})
    else:
        pool.start(case)


def line_of(why):
    """The last line of an exception's text: strict configurations put the reason there."""
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    return f"{type(why).__name__}: {lines[-1] if lines else ''}"[:300]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="families that match")
    parser.add_argument("--entrance", choices=["onnx", "pt2"], default="onnx")
    parser.add_argument("--resume", action="store_true", help="leave out cases that are in the file of results")
    parser.add_argument("--results", default=os.path.join(HERE, "..", "..", "build", "models.jsonl"))
    parser.add_argument("--table", metavar="FILE", help="write the page of the results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--time-limit", type=int, default=240, help="seconds of one case")
    parser.add_argument("--memory-limit", type=int, default=16, help="GiB of addresses of one process")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch
    import tessera.check  # noqa: F401, imported once for all cases
    import transformers
    import page
    import results
    from pool import Pool
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    os.makedirs(os.path.dirname(os.path.abspath(options.results)), exist_ok=True)
    names = [family for family in families() if re.search(options.only, family)]
    cases = [(family, pad, options.entrance) for pad in ((0, None) if options.entrance == "pt2" else (None, 0))
             for family in names]
    known = results.read(options.results, page.case_of) if options.resume else {}

    def done(case, result):
        result = dict(zip(("family", "pad", "entrance"), case)) | result
        result["date"] = datetime.date.today().isoformat()
        known[case] = result
        with open(options.results, "a") as file:
            file.write(json.dumps(result) + "\n")
        print(page.line(result), flush=True)

    pool = Pool(options.jobs, options.time_limit, options.memory_limit, run_case, done)
    for case in cases:
        if case not in known:
            run_or_copy(case, known, done, pool)
    pool.finish()
    if options.table:
        page.write(results.read(options.results, page.case_of).values(), families(), options.table)
    return 1 if any(result["result"] in ("DIFFERENT", "failed") for result in known.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
