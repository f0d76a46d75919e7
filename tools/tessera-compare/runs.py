"""Compiles and runs one configuration and gathers what is known of it into one flat record."""

import json
import os
import statistics
import subprocess

from configurations import CHOICES, mesh_text

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute")

# The columns of the CSV, in order. Seconds are of one step; bytes are of one rank.
COLUMNS = (
    "configuration", *(column for column, _ in CHOICES), "sequence", "batch", "accumulate", "ranks", "status", "fits", "tokens_per_second",
    "flops_per_second", "step_seconds", "compute_seconds",
    "exposed_communication_seconds", "hidden_communication_seconds", "data_wait_seconds", "host_seconds", "utilisation",
    "memory_reserved", "memory_libraries", "memory_host", "memory_peak", "device_memory", "rss_peak",
    "communication_bytes", "communication_minimum_bytes", "loss",
    "predicted_step_seconds", "predicted_tokens_per_second", "predicted_exposed_seconds", "predicted_hidden_seconds", "error")


class Failure(Exception):
    """A tool that ended with an error; the text is what it said."""


def call(command, timeout, log):
    with open(log, "a+", encoding="utf-8", errors="replace") as file:
        begin = file.seek(0, os.SEEK_END)
        try:
            done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise Failure(f"{os.path.basename(command[0])} took more than {timeout} s; see {log}") from error
        file.seek(begin)
        said = file.read()
    if done.returncode != 0:
        lines = [line for line in said.splitlines() if "error" in line] or said.splitlines()[-1:]
        reason = lines[0] if lines else ""
        raise Failure(f"{os.path.basename(command[0])} ended with {done.returncode}: {reason}")


def compile_one(options, configuration, folder):
    """The report of the compiler; leaves an artifact unless only planning."""
    report = os.path.join(folder, "report.json")
    mesh = mesh_text(options.mesh)
    command = [os.path.join(options.tools, "tessera-compile"), options.model, *configuration.flags,
               "--batch", str(configuration.batch), "--accumulate", str(configuration.accumulate), "--mesh", mesh,
               f"--report={report}", "--target", options.target, *options.compile_flags]
    if not options.plan_only:
        command += ["-o", os.path.join(folder, "step.tessera")]
    call(command, options.timeout, os.path.join(folder, "log.txt"))
    with open(report, encoding="utf-8") as file:
        return json.load(file)


def run_one(options, folder):
    """The step records of a run, and its trace."""
    out = os.path.join(folder, "run")
    traced = min(2, options.steps)
    command = [os.path.join(options.tools, "tessera-run"), os.path.join(folder, "step.tessera"), "--data", options.data,
               "--steps", str(options.steps), "--out", out, "--no-export", "--log-every", "0", "--trace-steps",
               str(traced), *options.run_flags]
    call(command, options.timeout, os.path.join(folder, "log.txt"))
    with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
        steps = [record for record in map(json.loads, file) if "loss" in record and "step_seconds" in record]
    with open(os.path.join(out, "trace.json"), encoding="utf-8") as file:
        trace = [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]
    os.remove(os.path.join(folder, "step.tessera"))
    return steps, trace


def merged(intervals):
    result = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([begin, end])
    return result


def overlap(first, second):
    """Length of the intersection of two lists of disjoint, sorted intervals."""
    total, j = 0.0, 0
    for begin, end in first:
        while j < len(second) and second[j][1] <= begin:
            j += 1
        k = j
        while k < len(second) and second[k][0] < end:
            total += min(end, second[k][1]) - max(begin, second[k][0])
            k += 1
    return total


def shares_of_trace(trace):
    """(compute, hidden communication) in seconds per step, as means over the traced steps and ranks."""
    compute, hidden = [], []
    lanes = {(event["pid"], event["args"]["step"]) for event in trace}
    for rank, step in sorted(lanes):
        events = [event for event in trace if event["pid"] == rank and event["args"]["step"] == step]
        span = lambda event: (event["ts"], event["ts"] + event["dur"])
        busy = merged(span(e) for e in events if e["tid"] == 0 and e["cat"] != "wait" and e["cat"] not in COLLECTIVES)
        under_way = merged(span(e) for e in events if e["tid"] != 0 and e["cat"] in COLLECTIVES)
        compute.append(sum(end - begin for begin, end in busy) / 1e6)
        hidden.append(overlap(busy, under_way) / 1e6)
    return (statistics.mean(compute), statistics.mean(hidden)) if compute else (0.0, 0.0)


def planned(record, report):
    step, memory = report["step"], report["memory"]
    record.update(memory_reserved=memory["reserved_per_rank"], memory_peak=memory["peak_per_rank"],
                  memory_libraries=memory["libraries_per_rank"], memory_host=memory["host_per_rank"],
                  device_memory=int(memory["device_memory"]),
                  fits="yes" if memory["reserved_per_rank"] + memory["libraries_per_rank"] <= memory["device_memory"] else "no",
                  communication_bytes=sum(row["wire_bytes_per_rank"] for row in report["collectives"]),
                  communication_minimum_bytes=sum(row["minimum_wire_bytes_per_rank"] for row in report["collectives"]),
                  predicted_step_seconds=step["seconds"], predicted_tokens_per_second=report["tokens_per_second"],
                  predicted_exposed_seconds=step["exposed_communication_seconds"],
                  predicted_hidden_seconds=step["hidden_communication_seconds"])


def from_report(record, report):
    """What the cost model says stands where a run's figures would."""
    step = report["step"]
    record.update(step_seconds=step["seconds"], flops_per_second=report["model_flops_per_step"] / step["seconds"],
                  tokens_per_second=report["tokens_per_second"],
                  compute_seconds=step["compute_seconds"],
                  exposed_communication_seconds=step["exposed_communication_seconds"],
                  hidden_communication_seconds=step["hidden_communication_seconds"], data_wait_seconds=0.0, host_seconds=0.0,
                  utilisation=report["mfu"])


def from_run(record, report, steps, trace, warmup):
    counted = steps[warmup:] or steps
    median = lambda name: statistics.median(step.get(name) or 0.0 for step in counted)
    seconds = median("step_seconds")
    exposed, data = median("exposed_communication_seconds"), median("data_wait_seconds")
    traced_compute, traced_hidden = shares_of_trace(trace)
    traced_steps = {event["args"]["step"] for event in trace}
    traced_seconds = [step["step_seconds"] for step in steps if step["step"] in traced_steps]
    scale = seconds / statistics.mean(traced_seconds) if traced_seconds else 1.0
    compute = max(0.0, min(traced_compute * scale, seconds - exposed - data))
    record.update(fits="yes", step_seconds=seconds, flops_per_second=report["model_flops_per_step"] / seconds,
                  tokens_per_second=report["tokens_per_step"] / seconds, compute_seconds=compute,
                  exposed_communication_seconds=exposed, hidden_communication_seconds=traced_hidden * scale,
                  data_wait_seconds=data, host_seconds=max(0.0, seconds - compute - exposed - data),
                  utilisation=report["model_flops_per_step"] / seconds / report["peak_flops_per_second"],
                  rss_peak=max(step["memory"]["rss_peak"] for step in steps), loss=counted[-1]["loss"])


def measure(options, configuration):
    """(flat record, raw material) of one configuration. A failure is part of the record."""
    folder = os.path.join(options.out, "runs", configuration.name)
    os.makedirs(folder)
    record = dict.fromkeys(COLUMNS)
    record.update(configuration.choices, configuration=configuration.short_name, sequence=configuration.sequence, batch=configuration.batch,
                  accumulate=configuration.accumulate, ranks=options.ranks, status="ok")
    raw = {"configuration": configuration.name}
    try:
        report = raw["report"] = compile_one(options, configuration, folder)
        planned(record, report)
        if options.plan_only:
            from_report(record, report)
        else:
            steps, trace = run_one(options, folder)
            if not steps:
                raise Failure("tessera-run reported no steps")
            raw["steps"] = steps
            from_run(record, report, steps, trace, options.warmup)
    except (Failure, OSError, ValueError, KeyError) as error:
        record.update(status="failed", error=str(error) if isinstance(error, Failure) else repr(error))
    raw["record"] = record
    return record, raw
