"""surrogate classifier DATA"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape

from cli import complete, console, files, options
from cli.console import SECONDS_BETWEEN_LINES
from cli.errors import UsageError
from cli.sections import Command, section
from cli.values import Whole

if TYPE_CHECKING:
    from surrogate.kinds.images.classifier import Classifier
    from surrogate.kinds.images.classifier_data import Progress


@click.command(cls=Command)
@click.argument("data", shell_complete=complete.files)
@section(
    "What",
    click.option(
        "--labels",
        metavar="FILE",
        shell_complete=complete.files,
        help="Labels (IDX, .npy), or the name of their array in .npz [default: found].",
    ),
    click.option(
        "--model",
        metavar="MODEL",
        shell_complete=complete.surrogate_models,
        help="Model of images that the classifier is to guide.",
    ),
)
@options.seed
@options.out("classifier", "Folder of the classifier.")
@section(
    "Method",
    click.option(
        "--epochs", type=Whole(1), help="Number of passes over the images [default: 10 or more]."
    ),
    click.option(
        "--width", type=Whole(1), default=32, show_default=True, help="Features of the network."
    ),
    click.option(
        "--depth", type=Whole(1), default=1, show_default=True, help="Blocks at each resolution."
    ),
    click.option(
        "--estimates",
        type=Whole(1),
        help="Number of denoised images to learn from, with --model [default: 10,000 to 60,000].",
    ),
)
@options.force
@options.threads
@options.as_json
@options.quiet
def command(
    data: str,
    labels: str | None,
    model: str | None,
    epochs: int | None,
    width: int,
    depth: int,
    estimates: int | None,
    seed: int,
    out: str,
    force: bool,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn the class of an image from the labelled images in DATA.

    DATA is .npz, .npy, IDX, netCDF or a folder of pictures. With --model, half of the training
    images are that model's denoised estimates, as a sampler sees them: such a classifier guides.
    Without --model it judges finished images.

    \b
    surrogate classifier train-images-idx3-ubyte.gz --model digits -o guide
    surrogate sample digits --classifier guide --where 'class(image, 3)'
    """
    if estimates is not None and model is None:
        raise UsageError("--estimates are those of a model", remedy="add --model")
    say = console.messages(quiet)
    files.check_exists(data)
    target = _target(out, force)

    from cli.sample import chosen
    from surrogate.io import model_folder as store
    from surrogate.kinds.images.classifier import fit_classifier
    from surrogate.kinds.images.classifier_data import check_model
    from surrogate.kinds.images.files import read_images, summary
    from surrogate.model import Surrogate

    options.compute_on("cpu", threads)
    guided = None if model is None else Surrogate.load(chosen(model)[0])
    images = read_images(data, labels, say=lambda text: say.print(escape(text)))
    if guided is not None:
        check_model(guided, images)
    say.print(escape(summary(images).removesuffix(" not learned")))
    with _watched(say) as progress:
        made = fit_classifier(
            images,
            seed=seed,
            epochs=epochs,
            width=width,
            depth=depth,
            model=guided,
            pool=estimates,
            progress=progress,
        )
    made.about["command"] = shlex.join(["surrogate", *_words()])
    made.save(target)
    _report(made, target, model, say)
    if as_json:
        click.echo(
            store.to_json({"path": str(target), "classes": list(made.classes), **made.about})
        )


def _target(out: str, force: bool) -> Path:
    """The folder to write, if nothing is lost by it."""
    target = Path(out)
    if not target.parent.is_dir():
        raise UsageError(
            f"there is no folder {str(target.parent)!r} to put {target.name!r} in",
            value=out,
            remedy="make it, or choose another with -o",
        )
    files.check_writable(target)
    if target.is_dir() and any(target.iterdir()) and not force:
        raise UsageError(
            f"{out!r} exists",
            value=out,
            remedy="replace it with --force, or choose another with -o",
        )

    from surrogate.kinds.images.classifier import check_place

    check_place(target)
    return target


def _words() -> list[str]:
    """The command as it was given."""
    context = click.get_current_context()
    words = [str(context.info_name)]
    for option in context.command.params:
        name = option.name or ""
        if context.get_parameter_source(name) is not click.core.ParameterSource.COMMANDLINE:
            continue
        value = context.params[name]
        if isinstance(option, click.Argument):
            words.insert(1, str(value))
        elif isinstance(option, click.Option) and name not in ("force", "quiet", "as_json"):
            words += [option.opts[0], str(value)]
    return words


@contextmanager
def _watched(say: Console) -> Iterator[Callable[[Progress], None]]:
    """Progress: a bar on a terminal, else a line now and then."""
    begun = told = time.monotonic()
    bars: dict[str, Callable[..., None]] = {}
    seen: dict[str, int] = {}

    with ExitStack() as stack:

        def show(moment: Progress) -> None:
            nonlocal begun, told
            note = "" if math.isnan(moment.loss) else f"loss {moment.loss:.3f}"
            if moment.what not in bars:
                stack.close()  # one bar at a time
                bar = console.bar(say, moment.what, moment.total)
                bars[moment.what], seen[moment.what] = stack.enter_context(bar), 0
                begun = time.monotonic()
            bars[moment.what](moment.done - seen[moment.what], note)
            seen[moment.what] = moment.done
            now = time.monotonic()
            if not say.is_terminal and now - told >= SECONDS_BETWEEN_LINES:
                told = now
                left = (now - begun) / moment.done * (moment.total - moment.done)
                say.print(
                    f"{moment.what} {moment.done:,} of {moment.total:,}  {note}  {left:.0f} s left"
                )

        yield show


def _report(made: Classifier, target: Path, model: str | None, say: Console) -> None:
    about = made.about
    size = sum(each.stat().st_size for each in target.iterdir())
    say.print(
        f"[bold]{escape(str(target))}[/bold]  {len(made.classes)} classes, {made.parameters:,} "
        f"weights, {console.size(size)}, {about['updates']:,} updates in {about['seconds']:.0f} s, "
        f"seed {about['seed']}"
    )
    for what, name in (("images", "held-out images"), ("estimates", "denoised estimates")):
        if what in about["held_out"]:
            found = about["held_out"][what]
            say.print(
                f"{name}: {found['accuracy']:.2%} right, calibration error "
                f"{found['calibration_error']:.4f} ({found['images']:,} of them)"
            )
    if model is None:
        say.print("to guide a model it should know that model's estimates: add --model")
    first = made.classes[0]
    spelled = first if first.isdigit() else f'"{first}"'
    words = ["surrogate", "sample", "MODEL" if model is None else model]
    words += ["--classifier", str(target), "--where", f"class(image, {spelled})"]
    say.print(f"next: {escape(shlex.join(words))}")
