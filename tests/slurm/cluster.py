"""A Slurm cluster of two nodes on this machine: munged, slurmctld and a slurmd for each node, in a folder of its own, ended with it."""

import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel")
NODES = ("first", "second")

CONFIGURATION = """
ClusterName=drill
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmUser={user}
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=15
SlurmdTimeout=20
ReturnToService=2
InactiveLimit=0
{nodes}
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=20
PartitionName=cancelled Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=CANCEL GraceTime=20
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def missing():
    """What this machine lacks to run a cluster; empty if nothing."""
    lacks = [name for name in PROGRAMS if not find(name)]
    if lacks:
        return "no " + ", ".join(lacks) + ": Debian's packages are slurmctld, slurmd, slurm-client and munge"
    return "" if os.geteuid() == 0 else "slurmd must be started by root"


def find(program):
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for entry in sockets:
        entry.bind(("127.0.0.1", 0))
    ports = [entry.getsockname()[1] for entry in sockets]
    for entry in sockets:
        entry.close()
    return ports


def wait_until(condition, seconds, what):
    """The first value of `condition()` that is true; AssertionError with the text `what()` after the timeout, in seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.3)
    raise AssertionError(what())


class Cluster:
    """Started by its constructor; `close` ends every process of it and the steps that these left."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, {}
        for name in ("state", *(f"{kind}-{node}" for kind in ("spool", "tmp") for node in NODES)):
            os.makedirs(os.path.join(folder, name))  # PMIx keeps files of a node in its TmpFS
        control, *ports = free_ports(1 + len(NODES))
        nodes = "\n".join(f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs=2 "
                          f"RealMemory=2000 State=UNKNOWN" for name, port in zip(NODES, ports))
        self.configuration = os.path.join(folder, "slurm.conf")
        with open(self.configuration, "w") as file:
            file.write(CONFIGURATION.format(host=socket.gethostname(), control=control, user=getpass.getuser(),
                                            folder=folder, nodes=nodes))
        self.environment = os.environ | {"SLURM_CONF": self.configuration}
        key = os.path.join(folder, "munge.key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(128))
        self.start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}",
                   f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed")
        wait_until(lambda: os.path.exists(f"{folder}/munge.socket"), 10, lambda: "munged does not come up")
        self.start("slurmctld", "-D", "-c")
        for name in NODES:
            self.start_node(name)
        try:
            wait_until(lambda: all(self.node_state(name).startswith("IDLE") for name in NODES), 40, self.logs)
        except BaseException:
            self.close()
            raise

    def start(self, program, *arguments, name=None):
        self.daemons[name or program] = subprocess.Popen(
            [find(program), *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)

    def start_node(self, node):
        self.start("slurmd", "-D", "-N", node, name=node)

    def kill_node(self, node):
        """As a power cut: the daemon, and all that runs below it, at once."""
        daemon = self.daemons.pop(node)
        victims = descendants(self.steps(node))
        daemon.kill()
        daemon.wait()
        for pid in victims:
            end(pid, signal.SIGKILL)

    def steps(self, node):
        """The processes slurmstepd of a node: its slurmd may have ended, and they live on."""
        return [pid for pid, (_, _, name, files) in processes().items()
                if name.startswith("slurmstepd") and os.path.join(self.folder, f"spool-{node}") in files]

    def logs(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), errors="replace") as file:
                    text += f"--- {name}\n" + "".join(file.readlines()[-25:])
        return text

    def command(self, program, *arguments, **environment):
        done = subprocess.run([find(program), *arguments], env=self.environment | environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{program} {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def node_state(self, node):
        done = subprocess.run([find("scontrol"), "show", "node", node], env=self.environment, capture_output=True, text=True,
                              timeout=60)
        found = re.search(r"State=(\S+)", done.stdout)
        return found.group(1) if found else ""

    def job(self, number):
        """The fields of a job, as `scontrol show job` names them."""
        text = self.command("scontrol", "show", "job", "-o", number)
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def wait_for(self, number, seconds=60, **wanted):
        """Until these fields of a job have these values."""
        def matches():
            return all(self.job(number).get(name) == value for name, value in wanted.items())
        wait_until(matches, seconds, lambda: f"waited for {wanted} of job {number}, which has {self.job(number)}\n{self.logs()}")

    def close(self):
        victims = descendants([pid for node in NODES for pid in self.steps(node)])
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for pid in victims:
            end(pid, signal.SIGKILL)
        self.daemons = {}


def end(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def processes():
    """Of each process: its parent, session, command line, and the names of files that it has open or works in."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            with open(f"/proc/{entry}/cmdline") as file:
                name = file.read().replace("\0", " ")
            links = [f"/proc/{entry}/fd/{number}" for number in os.listdir(f"/proc/{entry}/fd")] + [f"/proc/{entry}/cwd"]
            files = " ".join(os.readlink(link) for link in links)
        except OSError:
            continue
        found[int(entry)] = (int(fields[1]), int(fields[3]), os.path.basename(name.strip()) if name else "", files)
    return found


def descendants(roots):
    """These processes and all below them."""
    table, found = processes(), list(roots)
    for pid in found:
        found += [child for child, (parent, *_) in table.items() if parent == pid and child not in found]
    return found
