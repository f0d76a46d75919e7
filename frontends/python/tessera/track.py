"""python -m tessera track: gives the records of a run to a tracker, afterwards."""

import os
import shlex
import time

from .command_line import own_parser
from .errors import CommandError, first_line, need
from .run import Run

HELP = """Gives the metrics, evaluations and settings of a run's folder to a tracker, whose package must be installed. wandb
writes an offline run for "wandb sync"; mlflow and trackio write, or send, where their own settings say.

  python -m tessera track runs/ft --to wandb --project chess"""

# What a record says of its place, not of the training.
PLACE = ("step", "stage")

LONGEST = 500  # characters of a parameter that every server of mlflow takes


def main(words):
    """The exit status. Raises CommandError."""
    parser = own_parser("track", HELP)
    parser.add_argument("run", help="the folder of a run")
    parser.add_argument("--to", choices=sorted(TRACKERS), required=True)
    parser.add_argument("--project", default="tessera", help="project or experiment (default: tessera)")
    parser.add_argument("--name", help="of the run (default: that of its folder)")
    options = parser.parse_args(words)
    run, name = Run(options.run), options.name or os.path.basename(os.path.abspath(options.run))
    try:
        records, settings = steps_of(run), run.settings
    except (OSError, ValueError) as why:
        raise CommandError(f"{options.run} holds no run: {why}") from why
    package = need(options.to)
    try:
        print(TRACKERS[options.to](package, options.project, name, settings, records))
    except Exception as why:  # whatever a tracker raises, of its settings or a server
        raise CommandError(f"{options.to}: {first_line(why)}") from why
    return 0


def steps_of(run):
    """[(step, {name: number}), …] in order: what a step and the evaluation after it say."""
    found = {}
    for record in run.records:
        if "loss" in record or record.get("stage") == "evaluation":
            found.setdefault(record["step"], {}).update({key: value for key, value in flat(record).items()
                                                         if key not in PLACE and type(value) in (int, float)})
    return sorted(found.items())


def flat(settings, prefix=""):
    """{"a.b": value} of nested dictionaries."""
    found = {}
    for key, value in settings.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def to_wandb(wandb, project, name, settings, records):
    run = wandb.init(project=project, name=name, config=settings, mode="offline",
                     settings=wandb.Settings(silent=True, x_disable_stats=True))  # they would be of this process
    for step, numbers in records:
        run.log(numbers, step=step)
    folder = os.path.dirname(run.dir)
    run.finish()
    return shlex.join(["wandb", "sync", folder])


def to_mlflow(mlflow, project, name, settings, records):
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=name) as run:
        texts = {key: str(value) for key, value in flat(settings).items()}
        mlflow.log_params({key: text if len(text) <= LONGEST else "in run.json" for key, text in texts.items()})
        mlflow.log_dict(settings, "run.json")
        now = int(time.time() * 1000)
        metrics = [mlflow.entities.Metric(key, value, now, step) for step, numbers in records for key, value in numbers.items()]
        mlflow.MlflowClient().log_batch(run.info.run_id, metrics)  # in parts; a call for each step would take minutes
    return f"{mlflow.get_tracking_uri()}: run {run.info.run_id}"


def to_trackio(trackio, project, name, settings, records):
    trackio.init(project=project, name=name, config=flat(settings), auto_log_gpu=False, auto_log_cpu=False)
    for step, numbers in records:
        trackio.log(numbers, step=step)
    trackio.finish()
    return shlex.join(["trackio", "show", "--project", project])


TRACKERS = {"wandb": to_wandb, "mlflow": to_mlflow, "trackio": to_trackio}
