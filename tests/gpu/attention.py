"""Our own attention on tensor cores: the unit tests of the simulator on the device, and times beside PyTorch's attention.

`gpu-attention-tests` calls the driver by its usual name, so that the same binary runs on a GPU and on a simulated one.
"""

import json
import os
import re
import sys

BINARY = "gpu-attention-tests"


def outcomes(said):
    """Test -> whether it passed, of what GoogleTest said, in the order in which they ended."""
    found = re.findall(r"^\[ +(OK|FAILED) +\] ([\w./]+)(?:, where .*)? \(\d+ ms\)$", said, re.MULTILINE)
    return {name: word == "OK" for word, name in found}


def times(said):
    """(heads, tokens, depth) -> milliseconds forward and backward, of the lines that begin with "time"."""
    rows = re.findall(r"^time heads (\d+) tokens (\d+) depth (\d+) forward ([\d.]+) backward ([\d.]+)$", said, re.MULTILINE)
    return {tuple(map(int, row[:3])): tuple(map(float, row[3:])) for row in rows}


def flops(heads, tokens, depth, products):
    """Of causal attention: half of all pairs."""
    return products * 2 * heads * tokens * tokens * depth / 2


def rate(milliseconds, *shape):
    """Both passes in TFLOP/s, by the 2 and 5 products that are needed."""
    return " and ".join(f"{flops(*shape, products) / spent / 1e9:.0f}" for spent, products in zip(milliseconds, (2, 5)))


def run(suite):
    binary = os.path.join(os.path.dirname(suite.runner), BINARY)
    with suite.part(f"{BINARY} is there") as there:
        if not os.path.exists(binary):
            raise RuntimeError(f"{binary} is missing: it is packed by prepare.sh where the tests are built")
    if not there.passed:
        return
    wrong, said = suite.attempt([binary], 120)
    found = outcomes(said)
    if ("device simulated GPU" in said) != (suite.device == "simulated"):
        suite.fail("attention", f"it ran on another device than {suite.device}: which libcuda.so.1 was loaded?")
        return
    for name, passed in found.items():
        with suite.part(f"attention {name}"):
            if not passed:
                raise AssertionError("differs from the CPU's attention, see log.txt")
    if (wrong and all(found.values())) or not found:
        suite.fail("attention", f"{wrong or 'no test ran'}: {said[-400:].strip()}")
    if suite.device == "cuda":
        measure(suite, binary)


def measure(suite, binary):
    with suite.part("times of attention are taken") as part:
        own = times(suite.run([binary, "--gtest_also_run_disabled_tests", "--gtest_filter=Times.*"], 60))
        if not own:
            raise RuntimeError("no times were printed")
    if not part.passed:
        return
    theirs = {}
    with suite.part("PyTorch's attention is timed"):
        theirs = {tuple(row[:3]): row[3:] for row in
                  json.loads(suite.run([sys.executable, os.path.abspath(__file__), json.dumps(list(own))], 120, suite.plain).splitlines()[-1])}
    for shape, spent in own.items():
        heads, tokens, depth = shape
        with suite.part(f"attention of {tokens} tokens, {heads} heads of {depth}") as part:
            beside = theirs.get(shape)
            part.note = f"{spent[0]:.2f} and {spent[1]:.2f} ms, {rate(spent, *shape)} TFLOP/s" + (
                f"; PyTorch {beside[0]:.2f} and {beside[1]:.2f} ms, {rate(beside, *shape)} TFLOP/s" if beside else "")


def pytorch(shapes):
    """In a process of its own: prints rows of heads, tokens, depth and milliseconds forward and backward."""
    import torch
    rows = []
    for heads, tokens, depth in shapes:
        q, k, v = (torch.randn(1, heads, tokens, depth, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        gradient = torch.randn_like(q)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        for _ in range(4):  # the last one counts
            events[0].record()
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            events[1].record()
            torch.autograd.grad(out, (q, k, v), gradient)
            events[2].record()
            torch.cuda.synchronize()
        rows.append([heads, tokens, depth, events[0].elapsed_time(events[1]), events[1].elapsed_time(events[2])])
    print(json.dumps(rows))


if __name__ == "__main__":
    pytorch(json.loads(sys.argv[1]))
