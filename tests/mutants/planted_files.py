"""Bugs in how texts and names of files that others hand over are read and written."""

from __future__ import annotations

from tests.mutants.mutant import bug as _bug

__all__ = ["MUTANTS_OF_FILES"]

_FORMS = "tests/release/test_shown_guarantees.py::test_texts_of_a_model_have_a_closed_form"
_FLAVOUR = "tests/release/test_exports.py::test_a_folder_for_mlflow_requires_this_version_and_holds_a_checked_card"
_WORDS = "tests/workflow/test_sources.py::test_code_is_all_but_words"
_CLASSES = "tests/test_registry.py::test_what_is_not_there_is_one_line"
_HOSTILE = "tests/fuzz/test_hostile.py::"
_REGISTRY, _ESCAPING = "registry.py", "escaping.py"

MUTANTS_OF_FILES = (
    _bug(
        "a model states any text as its version", "base/model_file.py",
        "privsvm: Annotated[str, Obeys(VERSION)]", "privsvm: str", _FORMS, says="DID NOT RAISE",
    ),
    _bug(
        "classes of a model may have several lines", "base/model_file.py",
        "classes: list[Annotated[Any, Obeys(LABEL)]]", "classes: list[Any]", _FORMS, says="DID NOT RAISE",
    ),
    _bug(
        "texts of others may hold control characters", "untrusted.py",
        "if not all(map(_ANY_TEXT.accepts,", "if not all(map(str,", _FORMS, says="DID NOT RAISE",
    ),
    _bug(
        "requirements name the version that the model states", "release/exporting.py",
        "privsvm=={version('privsvm')}", "privsvm=={model.record.privsvm}", _FLAVOUR, says="assert",
    ),
    _bug(
        "a card is copied into MLflow's folder unchecked", "release/exporting.py",
        "        verify(folder)", "        pass", _FLAVOUR, says="DID NOT RAISE",
    ),
    _bug(
        "quotes of words end a text of SQL", "release/sql_query.py",
        """return "'" + value.replace("'", "''") + "'\"""", """return "'" + value + "'\"""",
        _HOSTILE + "test_every_accepted_text_in_every_role", says="rror",
    ),
    _bug(
        "quotes of columns end a name of SQL", "release/sql_query.py",
        """return '"' + value.replace('"', '""') + '"'""", """return '"' + value + '"'""",
        _HOSTILE + "test_every_accepted_text_in_every_role", says="rror",
    ),
    _bug(
        "brackets make a link in a dossier", _ESCAPING,
        r"([\\`*_\[\]|#~])", r"([\\`*_|#~])", _HOSTILE + "test_texts_in_markdown_are_texts", says="image",
    ),
    _bug(
        "formulas of a table stay formulas", _ESCAPING,
        """return f"'{value}\"""", "return value",
        "tests/release/test_released.py::test_predictions_run_nothing_in_a_spreadsheet", says="assert",
    ),
    _bug(
        "a file of methods offers one class only", "methods/__init__.py",
        r"(?:ESTIMATOR = |class (?=[^_]\w*\())(\w+)", r"ESTIMATOR = (\w+)",
        "tests/test_registry.py::test_classes_are_found_in_the_text_of_their_files", says="CondensedInformation",
    ),
    _bug(
        "params.yaml names a class of the standard library", _REGISTRY,
        "    _check_home(implementation, package)\n    spec", "    spec",
        _CLASSES, says="__spec__ is None",
    ),
    _bug(
        "params.yaml names a class of the tests of Python", _REGISTRY,
        ' or home in (library, f"{library}/lib-dynload")', "", _CLASSES, says="Regex pattern did not match",
    ),
    _bug(
        "a file replaces a pipe", "files.py",
        "if target.exists() and not (", "if not target.exists() and not (",
        "tests/test_files.py::test_a_pipe_is_not_replaced", says="DID NOT RAISE",
    ),
    _bug(
        "a step of a query has the name of its table", "release/sql_query.py",
        '"part" if table.lower()', '"step" if table.lower()',
        "tests/release/test_exports.py::test_a_table_may_have_a_name_of_the_query", says="circular reference",
    ),
    _bug(
        "another module hands on a class of the standard library", _REGISTRY,
        "    _check_home(implementation, str(estimator.__module__))\n", "", _CLASSES, says="Regex pattern did not match",
    ),
    _bug(
        "a class without predict is taken for a classifier", _REGISTRY,
        'for name in ("fit", "predict"))', 'for name in ("fit",))', _CLASSES, says="DID NOT RAISE",
    ),
    _bug(
        "the name of a data set in a result is a path", "privsvm_bench/records.py",
        '"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}").fullmatch', '"[A-Za-z0-9.][A-Za-z0-9._+/-]{0,63}").fullmatch',
        "tests/jobs/test_records.py::test_a_broken_result_is_one_line", says="DID NOT RAISE",
    ),
    _bug(
        "a docstring is code", "digests.py", "            if not _is_text(item):\n", "            if item:\n",
        _WORDS, says="assert",
    ),
    _bug(
        "constants are no code", "digests.py", "        yield repr(node)", "        yield type(node).__name__",
        _WORDS, says="assert",
    ),
    _bug(
        "empty fields of one version of Python are code", "digests.py",
        "if value is not None and value != []:", "if True:", _WORDS, says="startswith",
    ),
    _bug(
        "a sample confirms what was never measured", "privsvm_bench/evidence.py", "(bool(codes) and ", "(",
        "tests/test_evidence.py::test_an_entry_is_current_by_measurement_or_sample", says="assert not",
    ),
    _bug(
        "a part keeps its earlier measurements", "privsvm_bench/evidence.py",
        'item["parts"].items() if name != part}', 'item["parts"].items()}',
        "tests/test_evidence.py::test_a_part_has_one_measurement", says="assert",
    ),
)  # fmt: skip
