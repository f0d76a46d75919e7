"""The folder of a build that is not finished: NAME.partial beside the folder that it becomes."""

import fcntl
import json
import os
import shutil

from .errors import DataError

LOCK, PROGRESS, HASHES = "lock", "progress.json", "hashes"


class Partial:
    """A context in which the folder is this process's. command: what the folder is made from, compared with what it was begun
    with; progress: what save() was given last, or None."""

    def __init__(self, output, command, restart):
        """output: the folder that it becomes; restart: begin again. Raises DataError, OSError on entry."""
        self.output, self.folder = output, output + ".partial"
        self.command, self.restart, self.progress, self.lock = command, restart, None, None

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        self.lock = open(self.path(LOCK), "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as why:
            raise DataError(f"another build writes {self.folder}; wait for its end") from why
        if os.path.exists(self.output):
            shutil.rmtree(self.folder, ignore_errors=True)
            raise DataError(f"{self.output} has just been made by another build")
        if self.restart:
            self.clear()
        self.progress = self.load()
        return self

    def __exit__(self, *_):
        self.lock.close()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def load(self):
        if not os.path.exists(self.path(PROGRESS)):
            self.clear()
            return None
        try:
            with open(self.path(PROGRESS)) as file:
                progress = json.load(file)
        except ValueError as why:
            raise DataError(f"{self.path(PROGRESS)} is damaged; --restart begins again") from why
        other = [name for name, value in self.command.items() if progress["command"].get(name) != value]
        if other:
            raise DataError(f"{self.folder} is the beginning of another build, which differs in {', '.join(other)}; repeat "
                            "that command to complete it, or --restart deletes it and begins this one")
        return progress

    def save(self, progress):
        """Replaces the progress at once."""
        with open(self.path(PROGRESS + ".new"), "w") as file:
            json.dump({"command": self.command, **progress}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.path(PROGRESS + ".new"), self.path(PROGRESS))

    def clear(self):
        """Removes all that the folder has."""
        for name in os.listdir(self.folder):
            path = self.path(name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif name != LOCK:
                os.remove(path)

    def leave(self, hopeless):
        """The build ends without a result: removes the folder if nothing can come of it or it has no progress to go on from."""
        if hopeless or not os.path.exists(self.path(PROGRESS)):
            shutil.rmtree(self.folder, ignore_errors=True)

    def finish(self):
        """The folder is complete and gets its name."""
        for directory, _, names in os.walk(self.folder):
            for path in (*(os.path.join(directory, name) for name in names), directory):
                sync(path)
        os.rename(self.folder, self.output)
        for name in (PROGRESS, HASHES, LOCK):
            if os.path.exists(os.path.join(self.output, name)):
                os.remove(os.path.join(self.output, name))
        sync(self.output)
        sync(os.path.dirname(self.output))


def sync(path):
    """Waits until a file or the entries of a folder are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
