"""python -m tessera track: gives the records of a run to a tracker, afterwards."""

import argparse
import os
import sys

from .run import Run

HELP = """Gives the metrics, evaluations and settings of a run's folder to a tracker, whose package must be installed. Nothing is
sent over a network: wandb writes an offline run for "wandb sync", mlflow and trackio write where their own settings say.

  python -m tessera track runs/ft --to wandb --project chess"""

# What a record says of its place, not of the training.
PLACE = ("step", "stage")


def main(words):
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tessera track", description=HELP,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a run")
    parser.add_argument("--to", choices=sorted(TRACKERS), required=True)
    parser.add_argument("--project", default="tessera", help="project or experiment (default: tessera)")
    parser.add_argument("--name", help="of the run (default: that of its folder)")
    options = parser.parse_args(words)
    run, name = Run(options.run), options.name or os.path.basename(os.path.abspath(options.run))
    try:
        records, settings = steps_of(run), run.settings
        print(TRACKERS[options.to](options.project, name, settings, records))
    except ImportError as why:
        print(f"tessera: error: --to {options.to}: {why}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as why:
        print(f"tessera: error: {options.run} holds no run: {why}", file=sys.stderr)
        return 1
    return 0


def steps_of(run):
    """[(step, {name: number}), …] in order: what a step and the evaluation after it say."""
    found = {}
    for record in [*run.metrics, *run.evaluations]:
        numbers = {key: value for key, value in record.items() if key not in PLACE and isinstance(value, (int, float))
                   and not isinstance(value, bool)}
        found.setdefault(record["step"], {}).update(numbers)
    return sorted(found.items())


def flat(settings, prefix=""):
    """{"a.b": value} of nested dictionaries."""
    found = {}
    for key, value in settings.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return found


def to_wandb(project, name, settings, records):
    import wandb
    run = wandb.init(project=project, name=name, config=settings, mode="offline", settings=wandb.Settings(silent=True))
    for step, numbers in records:
        run.log(numbers, step=step)
    folder = os.path.dirname(run.dir)
    run.finish()
    return f"wandb sync {folder}"


def to_mlflow(project, name, settings, records):
    import mlflow
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=name) as run:
        mlflow.log_params({key: str(value)[:500] for key, value in flat(settings).items() if key != "earlier"})
        for step, numbers in records:
            mlflow.log_metrics(numbers, step=step)
    return f"{mlflow.get_tracking_uri()}: run {run.info.run_id}"


def to_trackio(project, name, settings, records):
    import trackio
    trackio.init(project=project, name=name, config=flat(settings))
    for step, numbers in records:
        trackio.log(numbers, step=step)
    trackio.finish()
    return f"trackio show --project {project}"


TRACKERS = {"wandb": to_wandb, "mlflow": to_mlflow, "trackio": to_trackio}
