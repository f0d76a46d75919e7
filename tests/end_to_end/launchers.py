"""What starts the ranks of a run as processes, and which processes they then are."""

import os
import shutil
import socket

from harness import BIN

HAS_MPI = shutil.which("mpirun") is not None and os.path.exists(os.path.join(BIN, "libtessera-mpi.so"))
# Open MPI asks for this where it runs as root, and where there are fewer cores than ranks.
MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def tcp_environment(rank, ranks, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def ranks_of(mpirun):
    """Process ids of the tessera-run processes that an mpirun (its process id) has started, by rank."""
    ranks = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{name}/comm") as file:
                command = file.read().strip()
            if parent != mpirun or command != "tessera-run":
                continue
            with open(f"/proc/{name}/environ") as file:
                variables = dict(item.split("=", 1) for item in file.read().split("\0") if "=" in item)
            ranks[int(variables["OMPI_COMM_WORLD_RANK"])] = int(name)
        except (OSError, KeyError, ValueError):  # it has ended meanwhile, or only begins
            continue
    return ranks
