"""What goes wrong on GPUs: one clear error each, in time, with whole checkpoints. And what ranks on GPUs report."""

import json
import os
import re
import shutil
import subprocess
import time
import unittest

from harness import BIN, Golden, ToolTest

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")
TIMEOUT = 2  # of a stall, in seconds
PATIENCE = 20  # for all that is not the stall, on a machine that is busy


@unittest.skipUnless(os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")) and
                     os.path.exists(os.path.join(BIN, "libtessera-cuda.so")),
                     "the build has no backend for GPUs: CUDA's toolkit was not found")
class GpuFailures(ToolTest):
    def compile(self, ranks):
        golden = Golden("gpt")
        golden.batch = 4
        flags = ["--mesh", f"shard={ranks}", "--strategy", "zero3"] if ranks > 1 else []
        self.succeed("tessera-compile", *golden.compile_flags(), *flags, "--target", "sm_90", "-o", "model.tessera")
        return golden

    def simulate(self, golden, run, *flags, libraries=SIMULATOR, data=None, steps=4, **settings):
        """tessera-run on simulated GPUs; where something fails, it must end by itself."""
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries,
                       **{"TESSERA_SIM_" + name.upper(): str(value) for name, value in settings.items()}}
        command = [os.path.join(BIN, "tessera-run"), "model.tessera", "--data", data or golden.data, "--order",
                   "sequential", "--steps", str(steps), "--stall-timeout", str(TIMEOUT), "--out", run, *flags]
        if "--resume" not in flags:
            command += ["--weights", golden.weights]
        begin = time.monotonic()
        done = subprocess.run(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120)
        done.seconds = time.monotonic() - begin
        return done

    def counts(self, golden, run):
        """What four steps on two GPUs run, by kind."""
        report = self.path(run + ".json")
        done = self.simulate(golden, run, devices=2, report=report)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(report) as file:
            told = json.load(file)
        self.assertEqual((told["errors"], told["leaks"]), ([], {}))
        return told["counts"]

    def fails(self, message, golden, run, *flags, **settings):
        done = self.simulate(golden, run, *flags, **settings)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        last = done.stderr.strip().splitlines()[-1]
        self.assertRegex(last, "^error: .*" + message)
        self.assertLess(done.seconds, TIMEOUT + PATIENCE)
        return done

    def test_what_a_machine_lacks(self):
        """Told before the data are read, and nothing is written."""
        golden = self.compile(1)
        empty = self.path("empty")
        os.mkdir(empty)
        missing = dict(data=self.path("nowhere"))
        for message, settings in (("sm_90: this machine has no NVIDIA GPU", dict(devices=0)),
                                  ("the driver is for CUDA 12.8, this tessera-run needs one for CUDA 13", dict(driver=12080)),
                                  ("is an sm_80; compile the model with --target sm_80", dict(capability=80)),
                                  (r"the plan needs \d+ MiB on the GPU for each rank, 'simulated GPU' has 10 MiB",
                                   dict(memory=10 << 20))):
            with self.subTest(message):
                self.fails(message, golden, "run", **missing, **settings)
                self.assertFalse(os.path.exists(self.path("run")))

    def test_what_is_not_installed(self):
        golden = self.compile(1)
        for library, message in (("libcuda.so.1", "libcuda.so.1: cannot open .*: no NVIDIA driver is installed"),
                                 ("libnccl.so.2", "libnccl.so.2: .*")):
            folder = self.path("without-" + library)
            os.mkdir(folder)
            for name in os.listdir(SIMULATOR):
                if name.startswith("lib") and name != library:
                    os.symlink(os.path.join(SIMULATOR, name), os.path.join(folder, name))
            with self.subTest(library):
                done = self.simulate(golden, "run", libraries=folder)
                if done.returncode == 0 or "cannot open" not in done.stderr:
                    continue  # NVIDIA's own is installed
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, message)
        if shutil.which("cc"):
            # A driver that does not have what the backend calls.
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-Wl,-soname,libcuda.so.1", "-o",
                            os.path.join(self.path("without-libcuda.so.1"), "libcuda.so.1")], check=True)
            self.fails("undefined symbol: cu.*: the NVIDIA driver or a library of CUDA is too old", golden, "run",
                       libraries=self.path("without-libcuda.so.1"))

    def test_memory_that_others_use(self):
        golden = self.compile(1)
        self.fails("cuMemAlloc: out of memory", golden, "run", fail="alloc:1")

    def test_ranks_share_the_memory_of_a_gpu(self):
        golden = self.compile(2)
        self.fails(r"the plan needs \d+ MiB on the GPU for each of 2 ranks, 'simulated GPU' has \d+ MiB free of 60 MiB",
                   golden, "small", memory=60 << 20)
        for run, settings in (("one", dict(memory=80 << 20)), ("each", dict(memory=60 << 20, devices=2))):
            done = self.simulate(golden, run, steps=1, **settings)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"the plan leaves \d+ MiB of the GPU's memory to cuBLASLt, cuDNN and NCCL")

    def test_nccl_fails(self):
        golden = self.compile(2)
        middle = self.counts(golden, "whole")["collectives"] // 2
        self.fails("ncclCommInitRank: unhandled system error", golden, "a", devices=2, fail="nccl-init")
        self.fails("stalled: not all ranks reached ncclCommInitRank within 2 s", golden, "b", devices=2, fail="nccl-hang")
        self.fails(r"rank \d: step \d, under way: .* of node '.*' \(instruction \d+\): NCCL: remote process "
                   "exited or there was a network error", golden, "c", devices=2,
                   fail=f"nccl:{middle}")

    def test_collectives_that_cannot_be_captured(self):
        golden = self.compile(2)
        self.fails("collectives cannot be part of CUDA graphs; --no-graph runs without them", golden, "none", devices=2,
                   fail="nccl-no-capture")
        done = self.simulate(golden, "issued", "--no-graph", devices=2, fail="nccl-no-capture")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_lost_rank_ends_all_and_leaves_whole_checkpoints(self):
        golden = self.compile(2)
        flags = ["--checkpoint-every", "1"]
        middle = self.counts(golden, "whole")["collectives"] // 2
        # Where the driver's queues are short, the rank's own thread is held in a launch when a rank is lost.
        for run, more, settings in (("graph", [], {}), ("issued", ["--no-graph"], {}),
                                    ("held", ["--no-graph"], dict(queue=8))):
            with self.subTest(run):
                done = self.fails(r"stalled: rank \d waits in \w+ .*of node '.*' \(instruction \d+\) of step \d, which "
                                  "not all ranks reached within 2 s", golden, run, *flags, *more, devices=2,
                                  fail=f"nccl-lost:{middle}", **settings)
                self.assertRegex(done.stderr, r"rank \d ends in step \d, under way: \w+ ")
                resumed = self.simulate(golden, run, "--resume", run, devices=2)
                self.assertEqual(resumed.returncode, 0, resumed.stderr)
                self.assertEqual([record["loss"] for record in self.metrics(run)],
                                 [record["loss"] for record in self.metrics("whole")])

    def test_a_kernel_fails(self):
        golden = self.compile(2)
        kernels = self.counts(golden, "whole")["kernels"]
        self.fails(r"rank \d: step 1, .*under way: \w+ .*of node '.*' \(instruction \d+\).*: the GPU failed: unspecified",
                   golden, "issued", devices=2, fail=f"launch:{kernels // 12}")
        self.fails(r"rank \d: step \d.*: the GPU failed \(--no-graph says in which instruction\): unspecified launch failure",
                   golden, "graph", devices=2, fail=f"launch:{kernels // 2}")

    def test_arenas_are_registered_or_a_line_says_why_not(self):
        golden = self.compile(2)
        losses = []
        again = (r"rank \d: ncclCommWindowRegister: unhandled system error[\s\S]*"
                 "arenas cannot be registered as windows, trying again as buffers")
        for name, told, counted, settings in (
                ("windows", "registered as windows with 2 communicators", {"windows": 8}, {}),  # 2 ranks, arenas, streams
                ("buffers", "registered as buffers with 2 communicators", {"buffers": 8}, dict(fail="nccl-windows")),
                ("again", "registered as buffers with 2 communicators", {"buffers": 8}, dict(fail="nccl-register:3")),
                ("never", "not registered", {}, dict(fail="nccl-register:3,nccl-register-buffers")),
                ("none", "not registered", {}, dict(fail="nccl-buffers"))):
            report = self.path(name + ".json")
            done = self.simulate(golden, name, devices=2, report=report, **settings)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"NCCL 2\.\d+\.\d+: arenas are " + told)
            self.assertEqual(bool(re.search(again, done.stderr)), "nccl-register" in settings.get("fail", ""), done.stderr)
            with open(report) as file:
                found = json.load(file)
            self.assertEqual((found["errors"], found["leaks"]), ([], {}))
            for way in ("windows", "buffers"):
                if way != "windows" or "nccl-register" not in settings.get("fail", ""):
                    self.assertEqual(found["counts"].get(way, 0), counted.get(way, 0), (name, way))
            losses.append([record["loss"] for record in self.metrics(name)])
        for other in losses[1:]:
            self.assertEqual(losses[0], other)

    def test_steps_as_graphs_tell_where_their_time_went(self):
        golden = self.compile(2)
        report = self.path("report.json")
        for run, flags in (("graph", []), ("issued", ["--no-graph"])):
            done = self.simulate(golden, run, *flags, devices=2, report=report)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(report) as file:
                nodes = json.load(file)["counts"].get("event nodes", 0)
            self.assertEqual(nodes > 0, run == "graph")
            for record in self.metrics(run):
                compute, exposed, hidden = (record[name + "_seconds"] for name in (
                    "compute", "exposed_communication", "hidden_communication"))
                self.assertGreater(compute, 0)
                self.assertGreater(exposed + hidden, 0)
                self.assertGreaterEqual(min(exposed, hidden), 0)
                self.assertLess(compute + exposed, record["step_seconds"])
                self.assertLess(hidden, compute + exposed)
                self.assertGreater(record["launcher_cpu_seconds"], 0)
                self.assertGreater(record["mfu"], 0)

    def test_a_trace_has_a_lane_per_stream(self):
        golden = self.compile(2)
        done = self.simulate(golden, "run", "--trace-steps", "1", devices=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("run", "trace.json")) as file:
            events = json.load(file)["traceEvents"]
        lanes = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
        self.assertEqual(lanes, {(rank, stream) for rank in (0, 1) for stream in (0, 1, 2)})


if __name__ == "__main__":
    unittest.main()
