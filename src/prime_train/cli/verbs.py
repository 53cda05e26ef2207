"""The table of commands, and the Typer app made of it. Only the command that is called is imported."""

from collections.abc import Mapping
from itertools import groupby
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from prime_train.cli.lazy import Verb, add
from prime_train.version import __version__

_AFTER_RUN = "prime_train.checkpoints.commands.group:AfterRun"

VERBS: Mapping[str, tuple[Verb, ...]] = {
    "Runs": (
        Verb(
            "run",
            "prime_train.launch.commands.run:run",
            "Launch a training run.",
            "prime_train.launch.commands.run:WithCommand",
        ),
        Verb("status", "prime_train.status.commands.status:status", "Show state, step, spend and restarts."),
        Verb("logs", "prime_train.outputs.commands.logs:logs", "Show a run's history and log."),
        Verb(
            "diagnose",
            "prime_train.status.commands.diagnose:diagnose",
            "Explain what happened to a run, or what a log's end means.",
        ),
        Verb("page", "prime_train.pages.commands.page:page", "Write a run's page as a single HTML file."),
        Verb(
            "profile",
            "prime_train.trainers.prime_rl.profile.commands:profile",
            "Show what the time of a step is spent on.",
        ),
        Verb(
            "compare",
            "prime_train.outputs.results.commands:compare",
            "Compare a run's results with those of another run.",
        ),
        Verb(
            "outputs",
            "prime_train.outputs.commands.outputs:outputs",
            "List, get and compare a run's outputs, logs, metrics.",
            verbs=(
                Verb(
                    "outputs list",
                    "prime_train.outputs.commands.listing:list_",
                    "List the outputs.",
                    _AFTER_RUN,
                ),
                Verb(
                    "outputs get",
                    "prime_train.outputs.commands.get:get",
                    "Download the outputs into a folder.",
                    _AFTER_RUN,
                ),
                Verb(
                    "outputs diff",
                    "prime_train.outputs.commands.diff:diff",
                    "Compare two versions of the outputs.",
                    _AFTER_RUN,
                ),
            ),
        ),
        Verb(
            "tensorboard",
            "prime_train.outputs.commands.tensorboard:tensorboard",
            "Write a run's metrics as TensorBoard event files.",
        ),
        Verb(
            "bundle",
            "prime_train.interop.commands.bundle:bundle",
            "Write an archive that reproduces and explains a run.",
        ),
        Verb("ssh", "prime_train.providers.commands.ssh:ssh", "Open a shell on the run's machine."),
        Verb("stop", "prime_train.runs.commands.stop:stop", "Stop runs."),
        Verb("resume", "prime_train.launch.commands.resume:resume", "Resume an ended run."),
        Verb(
            "rm", "prime_train.runs.commands.rm:rm", "Archive ended runs, so that status does not list them."
        ),
    ),
    "Configs": (
        Verb(
            "init",
            "prime_train.planning.commands.init:init",
            "Write a config for a new run, by asking and explaining.",
        ),
        Verb(
            "try",
            "prime_train.rehearsal.commands.try_:try_",
            "Rehearse a script: watch, kill and resume it.",
            "prime_train.launch.commands.run:WithCommand",
        ),
        Verb(
            "validate",
            "prime_train.checks.commands.validate:validate",
            "Check configs and list all their errors.",
            "prime_train.checks.commands.validate:WithDeepTrust",
        ),
        Verb(
            "lint", "prime_train.checks.commands.lint:lint", "Check configs quickly, for hooks and editors."
        ),
        Verb(
            "rules",
            "prime_train.checks.commands.rules:rules",
            "List the rules that configs are checked by, and why.",
        ),
        Verb(
            "import",
            "prime_train.interop.commands.imports:import_",
            "Make a config of another tool's task or script.",
        ),
        Verb(
            "export",
            "prime_train.interop.commands.export:export",
            "Write a config as a task of SkyPilot, Kubernetes or dstack.",
        ),
        Verb(
            "schema",
            "prime_train.checks.commands.schema:schema",
            "Print the JSON schema of configs, for editors.",
        ),
        Verb(
            "config",
            "",
            "Save, compare and restore versions of a config.",
            about="They are stored in PRIME_TRAIN_HOME (~/.prime-train), in the folder configs/ and there in "
            "one folder for each config file.",
            verbs=(
                Verb(
                    "config save",
                    "prime_train.configs.commands.save:save",
                    "Save the current config, together with the trainer's file.",
                ),
                Verb(
                    "config list",
                    "prime_train.configs.commands.listing:list_",
                    "List the versions and the runs that used each.",
                ),
                Verb(
                    "config diff",
                    "prime_train.configs.commands.diff:diff",
                    "Show two versions side by side and explain each change.",
                ),
                Verb(
                    "config restore",
                    "prime_train.configs.commands.restore:restore",
                    "Restore a version, together with the trainer's file.",
                ),
            ),
        ),
    ),
    "Images": (
        Verb(
            "image",
            "",
            "Build container images from configs.",
            verbs=(
                Verb(
                    "image build",
                    "prime_train.images.commands.build:build_",
                    "Build a container image with the agent and a trainer's environment.",
                ),
            ),
        ),
    ),
    "Estimates": (
        Verb(
            "memory",
            "prime_train.planning.commands.memory:memory",
            "Estimate the GPU memory that a run needs.",
        ),
        Verb("cost", "prime_train.planning.commands.cost:cost", "Estimate what a run costs, and why."),
        Verb(
            "probe",
            "prime_train.launch.commands.probe:probe",
            "Measure a config's steps and GPU memory in a short run.",
        ),
        Verb("find", "prime_train.planning.commands.find:find", "Find the cheapest machine for a model."),
        Verb(
            "models",
            "",
            "List or refresh the registry of models.",
            verbs=(
                Verb(
                    "models list",
                    "prime_train.planning.commands.listing:list_",
                    "List models and the trainers they are known to work with.",
                ),
                Verb(
                    "models refresh",
                    "prime_train.planning.commands.refresh:refresh",
                    "Read all models again from Hugging Face and write the registry.",
                ),
            ),
        ),
        Verb(
            "verify-model",
            "prime_train.planning.commands.verify_model:verify_model",
            "Check a model: access, kind, vLLM, tools, memory.",
        ),
    ),
    "Checkpoints": (
        Verb(
            "checkpoints",
            "prime_train.checkpoints.commands.group:checkpoints",
            "List, verify, restore and prune a run's checkpoints.",
            verbs=(
                Verb(
                    "checkpoints list",
                    "prime_train.checkpoints.commands.listing:list_",
                    "List the checkpoints.",
                    _AFTER_RUN,
                ),
                Verb(
                    "checkpoints verify",
                    "prime_train.checkpoints.commands.verify:verify",
                    "Verify a checkpoint by reading every byte.",
                    _AFTER_RUN,
                ),
                Verb(
                    "checkpoints restore",
                    "prime_train.checkpoints.commands.restore:restore",
                    "Download a checkpoint into a folder.",
                    _AFTER_RUN,
                ),
                Verb(
                    "checkpoints prune",
                    "prime_train.checkpoints.commands.prune:prune",
                    "Delete the checkpoints that the retention policy does not keep.",
                    _AFTER_RUN,
                ),
                Verb(
                    "checkpoints export",
                    "prime_train.checkpoints.commands.export:export",
                    "Write a checkpoint into an archive.",
                    _AFTER_RUN,
                ),
                Verb(
                    "checkpoints pin",
                    "prime_train.checkpoints.commands.pin:pin",
                    "Pin a checkpoint, so that it is never deleted.",
                    _AFTER_RUN,
                ),
                Verb(
                    "checkpoints unpin",
                    "prime_train.checkpoints.commands.pin:unpin",
                    "Unpin a checkpoint, so that it may be deleted again.",
                    _AFTER_RUN,
                ),
            ),
        ),
    ),
    "Providers": (
        Verb(
            "provider",
            "",
            "Add, check, list and remove providers of machines.",
            about="Credentials are stored in PRIME_TRAIN_HOME (~/.prime-train), in the folder credentials/, "
            "which only you can "
            "read. A variable of the\nenvironment wins over a stored credential.",
            verbs=(
                Verb(
                    "provider add",
                    "prime_train.providers.commands.add:add",
                    "Check a provider's credentials, and store them.",
                ),
                Verb(
                    "provider list",
                    "prime_train.providers.commands.listing:list_",
                    "List the providers, and where their credentials come from.",
                ),
                Verb(
                    "provider check",
                    "prime_train.providers.commands.check:check",
                    "Ask the providers whether they accept the credentials that are set up.",
                ),
                Verb(
                    "provider remove",
                    "prime_train.providers.commands.remove:remove",
                    "Delete a provider's stored credentials.",
                ),
            ),
        ),
        Verb(
            "drill",
            "prime_train.providers.commands.drill:drill",
            "See for cents whether a provider works as it should.",
        ),
    ),
    "Control plane": (
        Verb("serve", "prime_train.webhook.commands.serve:serve", "Run the control plane."),
        Verb("down", "prime_train.webhook.commands.down:down", "End the control plane in the background."),
        Verb("watch", "prime_train.watch.commands.group:watch", "Run an additional watcher."),
        Verb(
            "dashboard",
            "prime_train.pages.commands.dashboard:dashboard",
            "Print or revoke links to the control plane's pages.",
            verbs=(
                Verb(
                    "dashboard link",
                    "prime_train.pages.commands.link:link_",
                    "Print a link to the pages of the control plane.",
                ),
                Verb(
                    "dashboard revoke",
                    "prime_train.pages.commands.revoke:revoke",
                    "Revoke a link to the pages, or all links.",
                ),
            ),
        ),
        Verb(
            "key",
            "prime_train.webhook.commands.key:key",
            "Show this control plane's keys; make or revoke launch keys.",
            verbs=(
                Verb(
                    "key show",
                    "prime_train.webhook.commands.key.show:show_",
                    "Show how to reach this control plane from elsewhere.",
                ),
                Verb(
                    "key create",
                    "prime_train.webhook.commands.key.create:create",
                    "Make a key that may only launch.",
                ),
                Verb(
                    "key list",
                    "prime_train.webhook.commands.key.listing:list_",
                    "List the launch keys and what each permits.",
                ),
                Verb("key revoke", "prime_train.webhook.commands.key.revoke:revoke", "Revoke a launch key."),
            ),
        ),
        Verb(
            "github",
            "",
            "Set up repositories on GitHub.",
            about="Everything is done with GitHub's own tool gh, by the user who is logged in with it.",
            verbs=(
                Verb(
                    "github init",
                    "prime_train.github.commands.init:init",
                    "Set a repository on GitHub up for training.",
                ),
            ),
        ),
        Verb(
            "deploy",
            "prime_train.aws.commands.deploy:deploy",
            "Deploy the control plane to AWS, or update it.",
        ),
        Verb(
            "doctor",
            "prime_train.aws.commands.doctor:doctor",
            "Check providers, bucket, and the control plane on AWS.",
        ),
        Verb("destroy", "prime_train.aws.commands.destroy:destroy", "Remove the control plane from AWS."),
        Verb(
            "agent",
            "prime_train.providers.commands.agent:agent",
            "Run the agent of one attempt on this machine.",
        ),
    ),
    "Other": (
        Verb(
            "demo",
            "prime_train.demo.commands.group:demo",
            "Run a demo: a run loses its machine and finishes.",
        ),
        Verb(
            "gha",
            "",
            "Commands of the GitHub actions, for workflows.",
            verbs=(
                Verb(
                    "gha validate",
                    "prime_train.github.commands.validate:validate",
                    "Check, price and explain the configs of a pull request.",
                ),
                Verb(
                    "gha launch",
                    "prime_train.github.commands.launch:launch",
                    "Launch a run from the job's commit.",
                ),
                Verb(
                    "gha watch",
                    "prime_train.github.commands.watch:watch",
                    "Check every run once, and take the next step where one is due.",
                ),
                Verb(
                    "gha stop",
                    "prime_train.github.commands.stop:stop",
                    "Stop a run, or carry out the command in a comment.",
                ),
                Verb("gha status", "prime_train.github.commands.status:status", "Show the status of runs."),
            ),
        ),
    ),
}
"""The commands, by the heading in `prime-train --help` under which they are listed."""


class GroupedHelp(TyperGroup):
    """Lists the commands below the headings that they were added with."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = formatter.width - 6 - max(map(len, self.commands))
        for title, commands in groupby(
            self.commands.items(), key=lambda item: getattr(item[1], "rich_help_panel", None)
        ):
            with formatter.section(title):
                formatter.write_dl([(name, command.get_short_help_str(width)) for name, command in commands])


# Help is plain text, because rendering it with rich would double the time that `--help` takes.
app = typer.Typer(
    name="prime-train",
    cls=GroupedHelp,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Train on rented spot machines; runs recover by themselves when a machine is lost.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _title, _verbs in VERBS.items():
    add(app, _verbs, _title)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"prime-train {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train on rented spot machines; runs recover by themselves when a machine is lost."""
