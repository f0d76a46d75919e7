"""The job that `finetune --slurm` writes of a recipe, on a real Slurm: it is preempted, goes on and exports its folder. Run by run.sh."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import cluster

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "end_to_end"))
from harness import BIN, ROOT, TORCH_PYTHON, ToolTest, torch_has, with_package  # noqa: E402

STEPS = 4000
RECIPE = f"""
model: hf/
data: {{input: games.jsonl, seq: 128, output: data/}}
build: {{ranks: 2, global-batch: 4, output: chess.tessera}}
run: {{steps: {STEPS}, log-every: 1000, export-hf: out/, out: runs/chess}}
slurm: {{partition: low, nodes: 2, ntasks-per-node: 1, cpus-per-task: 1, job-name: chess, time: "1:00:00"}}
"""


@unittest.skipUnless(os.environ.get("TESSERA_TEST_SLURM"), "minutes long: TESSERA_TEST_SLURM=1, or tests/slurm/run.sh")
class ChessTest(ToolTest):
    """Two nodes, one rank on each, and the files of docs/guides/chess-slurm.md made small."""

    @classmethod
    def setUpClass(cls):
        if not torch_has("torch", "transformers", "chess", "yaml"):
            raise unittest.SkipTest("no Python with torch, transformers, chess and yaml (TESSERA_TORCH_PYTHON)")

    def setUp(self):
        super().setUp()
        if lacks := cluster.missing():
            raise RuntimeError(lacks)
        home = tempfile.mkdtemp(prefix="tessera-slurm-")  # short, for the names of sockets
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        self.slurm = cluster.Cluster(os.path.join(home, "cluster"))
        self.addCleanup(self.slurm.close)
        with open(self.path("chess.yaml"), "w") as file:
            file.write(RECIPE)
        chess = os.path.join(ROOT, "tools", "chess")
        self.python(os.path.join(chess, "games.py"), "--games", "60", "-o", "games.jsonl")
        self.python(os.path.join(chess, "model.py"), "games.jsonl", "--hidden", "32", "-o", "hf")
        self.python("-m", "tessera", "finetune", "chess.yaml", "--slurm", "job.sbatch")

    def python(self, *words):
        done = subprocess.run([TORCH_PYTHON, *words], cwd=self.folder, env=with_package(), capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def submit(self, *words):
        environment = {"PATH": BIN + ":" + os.environ["PATH"], "OMPI_MCA_btl": "self,tcp", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        return self.slurm.command("sbatch", "--parsable", "--chdir=" + self.folder, *words, **environment).strip()

    def steps(self):
        try:
            with open(self.path("runs", "chess", "metrics.jsonl")) as file:
                return [record["step"] for record in map(json.loads, filter(lambda line: line.endswith("\n"), file)) if "loss" in record]
        except OSError:
            return []

    def log(self, job):
        try:
            with open(self.path(f"chess-{job}.log"), errors="replace") as file:
                return file.read()
        except OSError:
            return "no log"

    def describe(self, job):
        return f"{self.slurm.job(job)}\n{self.log(job)}\n{self.slurm.logs()}"

    def test_preempted_once(self):
        job = self.submit(self.path("job.sbatch"))
        cluster.wait_until(self.steps, 90, lambda: f"no step: {self.describe(job)}")
        urgent = self.submit("--partition=high", "--nodes=2", "--exclusive", "--output=/dev/null", "--wrap=srun sleep 3")
        self.slurm.wait_for(urgent, JobState="COMPLETED", seconds=90)
        cluster.wait_until(lambda: self.slurm.job(job)["JobState"] in ("COMPLETED", "FAILED", "CANCELLED"), 300,
                           lambda: f"does not end: {self.describe(job)}")
        self.assertEqual((self.slurm.job(job)["JobState"], self.slurm.job(job)["Restarts"]), ("COMPLETED", "1"), self.describe(job))
        self.assertEqual(self.steps(), list(range(1, STEPS + 1)))  # each once
        with open(self.path("runs", "chess", "run.json")) as file:
            resumed = json.load(file)["resumed_step"]
        self.assertTrue(0 < resumed < STEPS, resumed)
        self.assertEqual(self.log(job).count(f"after step {resumed}"), 2, self.log(job))  # stopped, resumed
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            self.assertTrue(os.path.getsize(self.path("out", name)), name)
        self.python(os.path.join(ROOT, "tools", "chess", "legal.py"), "out", "--positions", "4")


if __name__ == "__main__":
    unittest.main()
