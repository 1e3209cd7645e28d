"""The command ``privsvm``: from a table to a private model. A command imports only modules that it needs.

Exit codes: 0 done, 1 an error that the message names, 2 a command line that cannot be read, 3 a release that the ledger
or the user does not allow, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import operator
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError, printable

_DESCRIPTION = """\
Train a private classifier on your table, and publish it with a card that states what is proved.

  privsvm schema patients.csv > schema.yaml      a draft from the header alone; edit it
  privsvm inspect patients.csv --schema schema.yaml
  privsvm release --data patients.csv --schema schema.yaml --epsilon 1 --out model/
  privsvm predict model/ new.csv > predicted.csv
"""


def _schema(options: argparse.Namespace) -> int:
    from privsvm.tables.drafts import draft_schema

    look = {"label": options.label, "person": options.person, "delimiter": options.delimiter, "look": options.look}
    print(draft_schema(options.table, **look), end="")
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from privsvm.release.training.inspections import record_inspection
    from privsvm.tables.inspection import inspect_table
    from privsvm.tables.schema import read_schema

    declared = None if options.schema is None else read_schema(options.schema, options.dataset)
    print("PRIVATE: this was read from the rows, and no epsilon covers it. Do not share it.")
    print("\n".join(map(printable, inspect_table(options.table, declared, options.delimiter))), flush=True)
    if declared is not None:
        record_inspection(options.table, declared, _ledger_of(options))
    return 0


def _risk_target(options: argparse.Namespace) -> Any:
    """Return the risk that is given in place of epsilon; None where there is none."""
    from privsvm.release.training.risk_targets import RiskTarget

    if options.guess is None and options.true_positives is None:
        return None
    if options.epsilon is not None:
        raise PrivSVMError("--epsilon: is what --guess or --true-positives choose; give one of them")
    return RiskTarget(options.guess, options.true_positives, options.at_false_positives)


def _plan(options: argparse.Namespace) -> int:
    from privsvm.privacy.gate import default_delta
    from privsvm.release.training.planning import TableShape, plan_lines
    from privsvm.release.training.recipes import Terms

    table = TableShape(options.rows, options.features, options.classes, options.prevalence)
    target = _risk_target(options)
    epsilons = sorted(options.epsilon or (0.5, 1.0, 2.0))
    epsilons = epsilons if target is None else [target.epsilon(default_delta(options.rows))]
    terms = Terms(epsilons[0], hold_back=options.hold_back, risk=target)
    rate, after = options.at_false_positives, options.after
    print("\n".join(plan_lines(table, epsilons, rate, options.rows_per_person, after, terms)))
    return 0


def _ledger_of(options: argparse.Namespace) -> Any:
    from privsvm.release.documents.ledger import Ledger, default_ledger

    return Ledger(options.ledger or default_ledger(), wait=options.wait)


def _release(options: argparse.Namespace) -> int:
    from privsvm.base.model_file import CARD
    from privsvm.release.documents.card import read_card
    from privsvm.release.documents.ledger import cost_words
    from privsvm.release.training.recipes import Terms, terms_of_risk
    from privsvm.release.training.releasing import CardOptions, Permission, release
    from privsvm.tables.schema import read_schema

    training = "training; the first run on a machine compiles first (`privsvm warm-up` does so in advance)"

    def confirm(before: Any, after: Any) -> bool:
        print(after.beside(before), file=sys.stderr)
        allowed = options.yes
        if not allowed and sys.stdin.isatty():
            allowed = input("Spend more? [y/N] ").strip().lower() in ("y", "yes")
        if allowed:
            print(training, file=sys.stderr)
        return bool(allowed)

    declared, target = read_schema(options.schema, options.dataset), _risk_target(options)
    if options.epsilon is None and target is None:
        raise PrivSVMError("--epsilon: give it, or the risk to accept as --guess or --true-positives")
    if declared.person and options.neighbours == "replace_one":
        raise PrivSVMError("--neighbours replace_one: persons are added and removed with their rows; leave it out")
    terms = Terms(options.epsilon, options.delta, options.neighbours, hold_back=options.hold_back, after=options.after)
    terms = terms if target is None else terms_of_risk(target, declared, terms)
    ledger = _ledger_of(options)
    if ledger.total(declared.name) is None:
        print(training, file=sys.stderr)
    done = release(
        options.data,
        declared,
        options.out,
        terms,
        ledger,
        Permission(options.budget, confirm, options.without_inspection),
        CardOptions(options.sign, options.accuracy),
    )
    entry = done.entry
    if done.resumed:
        print("this is the model of an earlier run, interrupted after it was paid for; nothing was spent now")
    out = printable(str(options.out))
    print(f"{out}: released, {cost_words(entry)}, proved")
    card = read_card(Path(options.out) / CARD)
    if options.after is not None:
        print("averaged with earlier releases" if card["built_on"] else "not averaged: the rule takes other features")
    if done.measured is not None:
        print(printable(card["accuracy"]))
    print(printable(f"account {done.total}"))
    return 0


def _open_output(out: str | None, table: str, model: str, stack: contextlib.ExitStack) -> Any:
    """Open the output: standard output, or a file that gets its name when it is whole."""
    from privsvm.files import atomic_path

    if out is None:
        return sys.stdout
    if os.path.exists(out) and os.path.samefile(out, table):
        raise PrivSVMError(f"{out}: is the table itself; give --out another name")
    _check_outside(out, model)
    # A device or a pipe is written to, not replaced.
    is_replaced = not os.path.exists(out) or os.path.isfile(out)
    return stack.enter_context(
        open(stack.enter_context(atomic_path(out)) if is_replaced else out, "w", newline="", encoding="utf-8")
    )


def _check_outside(out: str, model: str) -> None:
    """Raise PrivSVMError for a file in the folder of a model, which holds the card's files alone."""
    if os.path.dirname(os.path.realpath(out)) == os.path.realpath(model):
        raise PrivSVMError(f"{out}: lies in the folder of the model; give --out another name")


def _warn_of_cells(table: str, tally: Any, done: str) -> None:
    """Say how many records and cells of a table could not be read."""
    if tally.malformed:
        words = printable(f"{table}: {tally}")
        print(f"warning: {words}; they were {done} as rows without any value", file=sys.stderr)
    if unread := [f"{count} in {name!r}" for name, count in tally.unread.items() if count]:
        words = f"of {tally.records} rows, cells that are unknown or cannot be read: {', '.join(unread)}"
        print(printable(f"warning: {table}: {words}; `privsvm inspect` shows some"), file=sys.stderr)


def _warn_expired(folder: Path) -> None:
    """Warn of a model whose card says that it is not to be used any more."""
    import datetime

    from privsvm.base.model_file import CARD
    from privsvm.release.documents.card import read_card

    day = ""
    # A damaged card is for `verify` to refuse: the answers are written by now.
    with contextlib.suppress(PrivSVMError):
        day = read_card(folder / CARD)["about"].get("expires", "") if (folder / CARD).is_file() else ""
    if day and day < datetime.datetime.now(datetime.UTC).date().isoformat():
        print(printable(f"warning: {folder}: not to be used after {day}, says its card; release anew"), file=sys.stderr)


def _predict(options: argparse.Namespace) -> int:
    import csv

    import numpy as np

    from privsvm.escaping import spreadsheet_cell
    from privsvm.release.predicting.model import NOT_CALIBRATED, check_names, load
    from privsvm.tables.delimited import Tally

    model, tally, apostrophes = load(options.model), Tally(), 0
    classes = model.classes_.tolist()
    names = [*options.keep, "predicted", *(f"probability_{name}" for name in classes)]
    names += [] if options.coverage is None else ["set"]
    check_names(names)

    def texts(column: Sequence[Any]) -> Sequence[Any]:
        nonlocal apostrophes
        written = column if options.raw else list(map(spreadsheet_cell, column))
        apostrophes += sum(map(operator.is_not, written, column))
        return written

    with contextlib.ExitStack() as stack:
        blocks = model.predict_table(options.table, tuple(options.keep), tally, options.coverage)
        # The first block before anything is written: a table that cannot be read leaves no file.
        first = list(itertools.islice(blocks, 1))
        writer = csv.writer(_open_output(options.out, options.table, options.model, stack), lineterminator="\n")
        writer.writerow(texts(names))
        for labels, shares, kept, sets in itertools.chain(first, blocks):
            columns = [*map(texts, kept), texts(labels.tolist()), *np.round(shares, 6).T.tolist()]
            if sets is not None:
                columns.append(texts(["|".join(map(str, itertools.compress(classes, members))) for members in sets]))
            writer.writerows(zip(*columns, strict=True))
    if apostrophes:
        words = "begin like a formula, and have a ' before them lest a spreadsheet run them; --raw leaves it out"
        print(f"note: {apostrophes} texts {words}", file=sys.stderr)
    _warn_of_cells(options.table, tally, "predicted")
    if model.calibration_ is None:
        print(f"note: {NOT_CALIBRATED}", file=sys.stderr)
    _warn_expired(Path(options.model))
    return 0


def _explain(options: argparse.Namespace) -> int:
    import csv

    from privsvm.escaping import spreadsheet_cell
    from privsvm.release.predicting.model import check_names, load
    from privsvm.tables.delimited import Tally

    model, tally = load(options.model), Tally()
    explanation, writer = model.explain(), csv.writer(sys.stdout, lineterminator="\n")
    if options.column is not None:
        shape = explanation.shape(options.column)
        classes = model.record.classes[-shape.effects.shape[1] :]
        writer.writerow([spreadsheet_cell(str(name)) for name in [options.column, *classes, "noise"]])
        for value, *numbers in zip(shape.values, *shape.effects.T, shape.noise, strict=True):
            writer.writerow([spreadsheet_cell(value), *(f"{number:.4g}" for number in numbers)])
        return 0
    if options.rows is not None:
        names = [*explanation.names, "offset", *(f"noise of {name}" for name in explanation.names)]
        names = [*options.keep, "predicted", *names]
        check_names(names)
        writer.writerow(map(spreadsheet_cell, names))
        for labels, kept, *numbers in model.explain_table(options.rows, tuple(options.keep), tally):
            columns = [map(spreadsheet_cell, column) for column in (*kept, labels.tolist())]
            texts = [[f"{number:.4g}" for number in column] for array in numbers for column in array.T]
            writer.writerows(zip(*columns, *texts, strict=True))
        _warn_of_cells(options.rows, tally, "explained")
        return 0
    for column in sorted(explanation.columns, key=lambda column: -column.share):
        print(printable(str(column)))
    print(explanation.condition)
    return 0


def _export(options: argparse.Namespace) -> int:
    from privsvm.release.predicting.exporting import export

    _check_outside(options.out, options.model)
    export(options.model, options.to, options.out, table=options.table, keep=options.keep)
    print(f"{printable(str(options.out))}: written; predictions cost no epsilon")
    return 0


def _card(options: argparse.Namespace) -> int:
    from privsvm.base.model_file import CARD
    from privsvm.release.documents.card import read_card
    from privsvm.release.documents.card_page import card_text
    from privsvm.release.documents.verifying import verify

    # Recompute whatever is shown as proved.
    verify(options.model)
    print(card_text(read_card(Path(options.model) / CARD)), end="")
    return 0


def _dossier(options: argparse.Namespace) -> int:
    from privsvm.files import write_text
    from privsvm.release.documents.dossier import dossier
    from privsvm.release.documents.ledger import Ledger

    text = dossier(options.model, None if options.ledger is None else Ledger(options.ledger))
    if options.out is None:
        print(text, end="")
        return 0
    _check_outside(options.out, options.model)
    write_text(options.out, text)
    return 0


def _risk(options: argparse.Namespace) -> int:
    from privsvm.base.model_file import read_model
    from privsvm.release.documents.card import per_cent
    from privsvm.release.documents.ledger import cost_words

    record = read_model(options.model)[1]
    unit, computed = record.protection.unit, record.judged[1]
    if computed.epsilon is None:
        raise PrivSVMError(f"{options.model}: nothing is proved about this model, so no risk can be stated")
    print(f"{cost_words(computed)}, recomputed")
    here = ", and the earlier models," if record.releases[1:] else ""
    used = "used in this release" if here else "used"
    print(f"If someone knows everything else{here} and guesses whether a {unit} was {used}, the guess")
    for prior in options.prior:
        right = per_cent(record.risk(prior=prior).guess)
        alone = f"{100 * max(prior, 1 - prior):.6g}"
        print(
            f"- is right at most {right} times in 100, where {100 * prior:.6g} % were used (without the model: {alone})"
        )
    for rate in options.false_positive_rate:
        named = per_cent(record.risk(false_positive_rate=rate).true_positive_rate)
        print(
            f"- finds at most {named} % of the {unit}s that were used, if wrong about {100 * rate:.6g} % of the others"
        )
    one = record.risk()
    print(f"Advantage at most {per_cent(one.advantage)} %, mu at most {per_cent(one.mu / 100)}")
    for units in options.group:
        right = per_cent(record.risk(units).guess)
        print(f"Of {units} {unit}s that were all used or none of them: right at most {right} times in 100 at even odds")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from privsvm.release.documents.ledger import Ledger, cost_words
    from privsvm.release.documents.verifying import verify

    record = verify(options.model, options.key, None if options.ledger is None else Ledger(options.ledger))
    signed = "signed by this key" if options.key else "no signature was checked"
    print(f"{printable(str(options.model))}: unchanged; {cost_words(record.judged[1])}, recomputed; {signed}")
    _warn_expired(Path(options.model))
    return 0


def _ledger(options: argparse.Namespace) -> int:
    from privsvm.digests import canonical_json
    from privsvm.release.documents.deployments import deployments
    from privsvm.release.documents.ledger import cost_words

    ledger = _ledger_of(options)
    entries = ledger.entries()
    if options.export:
        print(canonical_json(deployments(entries), indent=1))
        return 0
    for entry in entries:
        unfinished = "" if entry.model else ", paid and not finished"
        print(f"{entry.number} {printable(f'{entry.date} {entry.account}')}: {cost_words(entry)}{unfinished}")
    for name in dict.fromkeys(entry.account for entry in entries):
        print(printable(str(ledger.total(name))))
    print(f"{printable(str(ledger.path))}: {len(entries)} release(s), head {ledger.head or 'none'}")
    return 0


def _ledger_plan(options: argparse.Namespace) -> int:
    from privsvm.privacy.gate import default_delta
    from privsvm.release.training.planning import TableShape, simulate_accuracy, simulation_lines
    from privsvm.release.training.retraining import schedule

    if (options.rows is None) != (options.features is None):
        raise PrivSVMError("accuracy depends on both: give --rows and --features, or neither")
    ledger = _ledger_of(options)
    entries = [entry for entry in ledger.entries() if entry.account == options.account]
    spent = ledger.total(options.account)
    budget = options.budget or (None if spent is None else spent.budget)
    if budget is None:
        raise PrivSVMError("no budget is known: give --budget, or --account with one that was released with a budget")
    delta = default_delta(options.rows) if options.delta is None else options.delta
    plan = schedule(budget, options.releases, delta, entries)
    print("\n".join(map(printable, plan.lines(len(entries), options.account))))
    if options.rows is None:
        print("Add --rows and --features to see the accuracy of each release.")
        return 0
    shape = TableShape(options.rows, options.features, options.classes, options.prevalence)
    expected = simulate_accuracy(shape, [plan.epsilon], rows_per_person=options.rows_per_person)
    print("\n".join(simulation_lines(expected)))
    return 0


def _methods(options: argparse.Namespace) -> int:
    from privsvm.registry import estimator_class, implementations
    from privsvm.release.training.recipes import default_recipe

    print(f"For your own data: {default_recipe().implementation}. What each epsilon is worth, and what each method is:")
    for name in implementations():
        method: Any = estimator_class(name)
        words = (method.__doc__ or "").split("\n\n")[0]
        status = "claimed" if "epsilon does not hold" in words else "proved"
        status = status if "epsilon" in method.declared else "none"
        print(f"{name:<24} {status:<8} {' '.join(words.split())}")
    return 0


def _warm_up(options: argparse.Namespace) -> int:
    from privsvm.warm_up import MODULES, warm_up

    print("compiling, which takes a minute or two", file=sys.stderr)
    warm_up(*MODULES)
    return 0


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be a positive finite number")
    return number


def _list_of_epsilons(text: str) -> list[float]:
    return [_positive(number) for number in text.split(",")]


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 < share < 1.0:
        raise argparse.ArgumentTypeError(f"{text}: must lie strictly between 0 and 1")
    return share


def _list_of_shares(text: str) -> list[float]:
    return [_share(part) for part in text.split(",")]


def _list_of_numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() and 1 <= int(part) <= 1000 for part in parts):
        raise argparse.ArgumentTypeError(f"{text}: must be whole numbers from 1 to 1000, such as 2,5")
    return [int(part) for part in parts]


def _add_ledger_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--ledger", help="file; by default PRIVSVM_LEDGER, or ~/.privsvm/ledger.jsonl")
    command.add_argument("--wait", type=_positive, default=30.0, help="seconds to wait for a locked ledger")


def _add_risk_options(command: argparse.ArgumentParser) -> Any:
    limits = command.add_argument_group("the budget, as epsilon or as a risk that nobody exceeds")
    limits.add_argument(
        "--guess", type=_share, help="share of right guesses whether someone's data were used, such as .60"
    )
    limits.add_argument(
        "--true-positives", type=_share, help="share of those whose data were used that a test finds, such as .03"
    )
    limits.add_argument(
        "--at-false-positives",
        type=_share,
        default=0.01,
        help="while it is wrong about this share of the others (default .01)",
    )
    return limits


def _add_shape_options(command: argparse.ArgumentParser, required: bool) -> None:
    command.add_argument("--rows", type=int, required=required)
    command.add_argument("--features", type=int, required=required)
    command.add_argument("--classes", type=int, default=2)
    command.add_argument("--prevalence", type=float, help="share of the rarest class (default: as common as others)")
    command.add_argument("--rows-per-person", type=int)


def _add_table_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    schema = add("schema", _schema, "draft a schema from a table's header", "table")
    schema.add_argument("--label", help="the column to predict")
    schema.add_argument("--person", help="the column that identifies persons")
    schema.add_argument("--delimiter", help="one character; by default the one that the header uses")
    schema.add_argument("--look", action="store_true", help="read the values too, which makes the draft private")

    inspect = add("inspect", _inspect, "check the rows for mistakes; the output is private", "table")
    inspect.add_argument("--schema", help="schema in YAML, for which `release` then counts the table as inspected")
    inspect.add_argument("--dataset", help="dataset whose `schema` to read, if --schema is a params.yaml")
    inspect.add_argument("--delimiter", help="one character, without --schema; by default the one that the header uses")
    _add_ledger_options(inspect)

    plan = add("plan", _plan, "estimate the accuracy without reading data")
    _add_shape_options(plan, required=True)
    plan.add_argument(
        "--hold-back",
        type=_positive,
        help="share to measure on, as of `release`: says how wide intervals and sets will be",
    )
    plan.add_argument("--after", help="folder of an earlier release, with which the new model is averaged")
    _add_risk_options(plan).add_argument("--epsilon", type=_list_of_epsilons, help="such as .5,1,2, the default")


def _add_release(add: Callable[..., argparse.ArgumentParser]) -> None:
    release = add("release", _release, "train one private model, and write it with its card and an entry in the ledger")
    release.add_argument("--data", required=True, help="CSV with a header")
    release.add_argument("--schema", required=True, help="YAML, see `privsvm schema`")
    release.add_argument("--dataset", help="dataset whose `schema` to read, if --schema is a params.yaml")
    _add_risk_options(release).add_argument(
        "--epsilon", type=_positive, help="per person if the schema names a column for persons, else per row"
    )
    release.add_argument("--out", required=True, help="folder to make")
    release.add_argument(
        "--delta",
        type=_positive,
        help="by default 1e-5, or 0.1 / rows if rows are declared and that is smaller",
    )
    release.add_argument(
        "--neighbours",
        choices=["add_remove", "replace_one"],
        default="add_remove",
        help="hide whether a row, or a person, is there, or what a row holds: then the number of rows is public",
    )
    release.add_argument(
        "--budget",
        type=_positive,
        help="most epsilon that all releases may cost together; the ledger remembers it",
    )
    release.add_argument("--yes", action="store_true", help="allow a further release of the same data set")
    release.add_argument("--after", help="folder of an earlier release, with which the new model is averaged")
    release.add_argument("--sign", help="Ed25519 private key (PEM)")
    release.add_argument("--accuracy", help="accuracy to state on the card, in words, measured on other rows")
    release.add_argument(
        "--hold-back",
        type=_positive,
        help="share of the rows or persons, such as 0.1, to test the model on, with noise, instead of training on them",
    )
    release.add_argument(
        "--without-inspection", action="store_true", help="accept a table that `privsvm inspect` has not seen"
    )
    _add_ledger_options(release)


def _add_model_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    predict = add("predict", _predict, "predict the rows of a table of any size", "model", "table")
    predict.add_argument("--out", help="file; by default standard output")
    predict.add_argument("--keep", action="append", default=[], help="column to copy; can be repeated")
    predict.add_argument(
        "--raw", action="store_true", help="no ' before texts that begin like a formula, which a spreadsheet would run"
    )
    predict.add_argument(
        "--coverage", type=_positive, help="add a column `set` of labels, right for such a share of rows"
    )

    words = "say which columns matter, with intervals from the noise; reads no training rows"
    explain = add("explain", _explain, words, "model")
    shown = explain.add_mutually_exclusive_group()
    shown.add_argument(
        "--rows", metavar="TABLE", help="table, for whose rows to print each column's part in the answer"
    )
    shown.add_argument("--column", help="column, whose effect to print at some of its values")
    explain.add_argument("--keep", action="append", default=[], help="column of --rows to copy; can be repeated")

    export = add("export", _export, "write a model for ONNX, for databases or for MLflow", "model")
    export.add_argument("--to", choices=["mlflow", "onnx", "sql"], required=True)
    export.add_argument("--out", required=True, help="file to write; for mlflow a new folder")
    export.add_argument("--table", default="rows", help="table that the query reads; by default rows")
    export.add_argument(
        "--keep", action="append", default=[], help="column that the query returns, too; can be repeated"
    )

    add("card", _card, "print a model's card", "model")

    dossier = add("dossier", _dossier, "write what a reviewer of a model asks for, in Markdown", "model")
    dossier.add_argument("--out", help="file; by default standard output")
    dossier.add_argument("--ledger", help="a ledger that holds the release, to state what all releases cost together")

    risk = add("risk", _risk, "bound what a model reveals about the people whose data trained it", "model")
    risk.add_argument(
        "--prior", type=_list_of_shares, default=[0.5, 0.1], help="shares of the guessed that were used, such as .5,.01"
    )
    risk.add_argument(
        "--false-positive-rate",
        type=_list_of_shares,
        default=[0.01, 0.001],
        help="error rates of a test on unused rows, such as .01,.001",
    )
    risk.add_argument("--group", type=_list_of_numbers, default=[2, 5, 10], help="sizes of groups, such as 2,5")

    verify = add("verify", _verify, "check a model's files and its epsilon", "model")
    verify.add_argument("--key", help="Ed25519 public key (PEM) of the signer")
    verify.add_argument("--ledger", help="a ledger that must hold the release")


def _add_ledger(add: Callable[..., argparse.ArgumentParser]) -> None:
    ledger = add("ledger", _ledger, "list releases and their total cost")
    ledger.add_argument(
        "--export", action="store_true", help="print drafts of records for the public registry of deployments, in JSON"
    )
    _add_ledger_options(ledger)
    words = "divide a budget by several releases to come, and show the accuracy of each"
    releases = ledger.add_subparsers(metavar="plan").add_parser("plan", help=words, description=words)
    releases.set_defaults(run=_ledger_plan)
    releases.add_argument(
        "--budget", type=_positive, help="epsilon of all releases together; by default that of the account"
    )
    releases.add_argument("--releases", type=int, required=True, help="number of releases to come")
    releases.add_argument("--account", help="`name` of the schema, whose earlier releases count")
    releases.add_argument("--delta", type=_positive, help="of each release; by default that of `release`")
    _add_shape_options(releases, required=False)
    _add_ledger_options(releases)


def _parser() -> argparse.ArgumentParser:
    from importlib.metadata import version

    parser = argparse.ArgumentParser(
        prog="privsvm", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"privsvm {version('privsvm')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")

    def add(name: str, run: Any, words: str, *positional: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=words, description=words)
        added.set_defaults(run=run)
        for argument in positional:
            added.add_argument(argument)
        return added

    for add_commands in (_add_table_commands, _add_release, _add_model_commands, _add_ledger):
        add_commands(add)
    add("methods", _methods, "list the methods, and whether their epsilon is proved")
    add("warm-up", _warm_up, "compile in advance")
    return parser


def run(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, on_interrupt: str) -> int:
    """Run the command that the arguments name, and return its exit code; write errors in one line.

    The parser sets ``run`` to the function of the command, which takes the options and returns the code. Without
    arguments, it reads the process's arguments. `on_interrupt` is the message after Ctrl-C.
    """
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except PrivSVMError as error:
        print(f"error: {printable(str(error))}", file=sys.stderr)
        return 3 if type(error).__name__ == "RefusedError" else 1
    except KeyboardInterrupt:
        print(on_interrupt, file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = printable(f"{error.filename or 'file system'}: {error.strerror or error}")
        print(f"error: {where}; check the path", file=sys.stderr)
        return 1
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command of ``privsvm``, by default the process's, and return its exit code; see the module."""
    return run(_parser(), arguments, "interrupted; `privsvm ledger` says whether a release was spent")
