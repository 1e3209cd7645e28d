"""Bugs in how files of tables become rows, and in what a release asks for before it reads them."""

from __future__ import annotations

from tests.mutants.mutant import bug as _bug

__all__ = ["MUTANTS_OF_TABLES"]

_TESTS = "tests/datasets/test_tables.py::"
_NEIGHBOURS = _TESTS + "test_a_record_moves_no_other_row"
_MISTAKES = "tests/release/test_mistakes.py::"
_DELIMITED, _TABLES, _INSPECTIONS = "tables/delimited.py", "tables/tables.py", "release/inspections.py"

MUTANTS_OF_TABLES = (
    _bug(
        "a quotation mark without its pair takes in the next lines", _DELIMITED,
        "            yield line.removesuffix", "            while line.count('\"') % 2 and (more := handle.readline()):\n"
        "                line += more\n            yield line.removesuffix",
        _NEIGHBOURS, says="assert first.shape == second.shape",
    ),
    _bug(
        "malformed rows are left out", _TABLES,
        "            block.append(tally.fields(record, len(names)))",
        "            if isinstance(record, list):\n                block.append(tally.fields(record, len(names)))",
        _NEIGHBOURS, says="assert first.shape == second.shape",
    ),
    _bug(
        "blank lines are left out of a release", _DELIMITED,
        "        for number, line in self._lines:\n            yield self._record(number, line)",
        "        for number, line in self._lines:\n            if line.strip():\n                yield self._record(number, line)",
        _NEIGHBOURS, says="assert first.shape == second.shape",
    ),
    _bug(
        "a byte that is no text stops a release", _DELIMITED,
        'errors="surrogateescape"', 'errors="strict"', _NEIGHBOURS, says="UnicodeDecodeError",
    ),
    _bug(
        "any character that Unicode calls one ends a line", _DELIMITED,
        "            yield line.removesuffix(\"\\n\").removesuffix(\"\\r\")", "            yield from line.splitlines() or ['']",
        _NEIGHBOURS, says="assert first.shape == second.shape",
    ),
    _bug(
        "a malformed row is an error", _DELIMITED,
        "        self.first = self.first or record\n", "        raise PrivSVMError(f\"{record}\")\n", _NEIGHBOURS,
        says="PrivSVMError",
    ),
    _bug(
        "missing values count as the mean of the others", _TABLES,
        "np.where(np.isfinite(numbers), numbers, column.fill_number)",
        "np.where(np.isfinite(numbers), numbers, np.nanmean([0.0, *numbers[np.isfinite(numbers)]]))",
        _NEIGHBOURS, says="tobytes()",
    ),
    _bug(
        "bounds are narrowed to the values that occur", _TABLES,
        "    low, high = column.limits\n", "    low, high = column.limits\n    high = max(low + 1e-9, min(high, np.nanmax(numbers)))\n",
        _NEIGHBOURS, says="tobytes()",
    ),
    _bug(
        "columns may lack a fill", "tables/schema.py",
        'if column.kind != "categories" and column.fill is None', 'if column.kind == "text" and column.fill is None',
        _TESTS + "test_a_number_without_a_fill_is_refused_by_the_schema_alone", says="DID NOT RAISE",
    ),
    _bug(
        "labels lose their leading zeros", "tables/labels.py",
        "    whole_number = _WHOLE.fullmatch(text)", "    text = text.lstrip('0') or text\n    whole_number = _WHOLE.fullmatch(text)",
        _TESTS + "test_labels_and_categories_keep_their_text", says="assert",
    ),
    _bug(
        "every table counts as inspected", _INSPECTIONS,
        "    return False\n", "    return True\n", _MISTAKES + "test_a_table_is_inspected_before_it_is_released",
        says="a row was read",
    ),
    _bug(
        "whether a table counts as inspected depends on its rows", _INSPECTIONS,
        '"table": os.path.realpath(table),', '"table": f"{os.path.realpath(table)} {os.path.getsize(table)}",',
        _MISTAKES + "test_the_record_of_an_inspection_is_private_and_knows_no_row", says="assert",
    ),
    _bug(
        "an inspection by one schema counts for all", _INSPECTIONS,
        '"schema": sha256_of_json(schema.to_json()),', '"schema": sha256_of_json(schema.name),',
        _MISTAKES + "test_a_table_is_inspected_before_it_is_released", says="assert 0 == 3",
    ),
    _bug(
        "everybody may read which tables were inspected", _INSPECTIONS,
        "        temporary.touch(mode=0o600)\n", "",
        _MISTAKES + "test_the_record_of_an_inspection_is_private_and_knows_no_row", says="0o777",
    ),
    _bug(
        "a release reads its rows before it asks for the inspection", "release/releasing.py",
        "        if not permission.without_inspection and not is_inspected(data, schema, ledger):",
        "        if not len(units_table(data, schema)[0]) or (\n"
        "            not permission.without_inspection and not is_inspected(data, schema, ledger)\n        ):",
        _MISTAKES + "test_a_table_is_inspected_before_it_is_released", says="a row was read",
    ),
    _bug(
        "texts of NumPy are no texts in one of two places", _TABLES,
        "return parse_number(value) if isinstance(value, str) else", "return parse_number(value) if type(value) is str else",
        "tests/tables/test_public_schema.py::test_texts_of_numpy_have_the_same_features_in_any_company", says="assert",
    ),
)  # fmt: skip
