"""Bugs in how files of tables, settings and caches are read, and in what a release asks for before it reads rows."""

from __future__ import annotations

from tests.mutants.mutant import bug as _bug

__all__ = ["MUTANTS_OF_TABLES"]

_TESTS = "tests/datasets/test_tables.py::"
_NEIGHBOURS = _TESTS + "test_a_record_moves_no_other_row"
_MISTAKES = "tests/release/test_mistakes.py::"
_HOSTILE = "tests/tables/test_hostile_cells.py::"
_DERIVED = "tests/test_derived_classes.py::"
_STORED = "tests/methods/test_what_stored_objects_hold.py::test_no_cell_is_stored"
_SEARCH = "tests/model_selection/test_private_search.py::"
_PLAIN, _SEARCHING = "constraints.py", "model_selection/private_search.py"
_CACHE, _FINISHED = "tests/workflow/test_finished.py::", "privsvm_bench/workflow/finished.py"
_SETTINGS, _YAML = "tests/test_plain_yaml.py::", "plain_yaml.py"
_PARAMS = "tests/jobs/test_params.py::"
_FOUND = "tests/fuzz/test_files.py::test_schemas_that_were_found"
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
        "texts of NumPy are numbers", _TABLES,
        "_NUMBERS = {int,", "_NUMBERS = {np.str_, int,",
        "tests/tables/test_public_schema.py::test_texts_of_numpy_have_the_same_features_in_any_company", says="assert",
    ),
    _bug(
        "an encoder remembers texts of private cells", _TABLES,
        "            values = columns[name]\n", "            values = columns[name]\n            self._last = list(values)\n",
        _STORED, says="assert not",
    ),
    _bug(
        "a stored search has the seed of its estimator", _SEARCHING,
        ', "estimator": copy.copy(self.estimator).set_params(random_state=None)', "",
        _SEARCH + "test_a_search_holds_nothing_but_what_it_releases", says="assert",
    ),
    _bug(
        "a search loads with the record of another", _SEARCHING,
        "        if shown is not None:\n            check_record(", "        if shown is None:\n            check_record(",
        _SEARCH + "test_a_search_with_the_record_of_another_does_not_load", says="DID NOT RAISE",
    ),
    _bug(
        "values of a declaration may be of derived classes", "tables/schema.py",
        "    value = plain(value)\n    if isinstance(value, Model):", "    if isinstance(value, Model):",
        _DERIVED + "test_a_declaration_is_the_one_that_is_stored[proxy]", says="assert",
    ),
    _bug(
        "a class is trusted for the module that it names", _PLAIN,
        "getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind", "True",
        _DERIVED + "test_a_value_is_rebuilt_from_what_it_stores", says="assert",
    ),
    _bug(
        "items of lists are not looked at", _PLAIN,
        "    if items and (kind in (list, tuple, dict) or objects):", "    if items and objects:",
        _DERIVED + "test_labels_are_those_that_are_stored", says="holds the label 7",
    ),
    _bug(
        "blocks take the arrays of a matrix as they are", "numerics/rows/row_blocks.py",
        "if isinstance(X, np.ndarray) else plain_sparse(X)", "if isinstance(X, np.ndarray) else X",
        _DERIVED + "test_rows_are_those_that_are_stored", says="assert",
    ),
    _bug(
        "methods of one object count as those of its class", _PLAIN,
        'written = getattr(value, "__dict__", None)', "written = None",
        _DERIVED + "test_an_estimator_with_a_method_of_its_own_proves_nothing", says="DID NOT RAISE",
    ),
    _bug(
        "a parameter is what it says of itself", _PLAIN,
        "if not (trusted(value) or type(value) in self.types) or plain(value)", "if plain(value)",
        _DERIVED + "test_no_parameter_may_be_of_a_class_that_lies_of_itself", says="DID NOT RAISE",
    ),
    _bug(
        "one cell of Arrow refuses all", "tables/tables.py",
        "    except Exception:\n        return object()\n", "    except KeyError:\n        return object()\n",
        "tests/tables/test_hostile_cells.py::test_no_cell_of_arrow_raises", says="Error",
    ),
    _bug(
        "any client sums rows", "base/validation.py",
        'if X.client is not None and not trusted(X.client, "distributed"):', "if X.client is not None and not X.client:",
        _DERIVED + "test_sums_are_of_a_client_of_dask", says="it was asked",
    ),
    _bug(
        "parameters may be of derived classes", _PLAIN,
        " or plain(value) is not value:", ":",
        _DERIVED + "test_no_parameter_may_be_of_a_derived_class", says="DID NOT RAISE",
    ),
    _bug(
        "tiny cells raise where NumPy is set so", _TABLES,
        '    @np.errstate(all="ignore")\n    def features', "    def features",
        _HOSTILE + "test_every_cell_in_every_column", says="FloatingPointError",
    ),
    _bug(
        "tiny numbers of rows raise where NumPy is set so", "base/tables.py",
        'with np.errstate(all="ignore"), config_context', 'with np.errstate(over="ignore", invalid="ignore"), config_context',
        _HOSTILE + "test_tiny_numbers_of_rows_are_no_errors", says="FloatingPointError",
    ),
    _bug(
        "a cell of an unforeseen kind is an error", _TABLES,
        "            except Exception:\n                number = unreadable", "            except (TypeError, ValueError):\n                number = unreadable",
        _HOSTILE + "test_every_cell_in_every_column", says="a cell was asked",
    ),
    _bug(
        "signalling numbers are an error", _TABLES,
        "        return value is None or value is np.ma.masked or bool(value != value)\n    except Exception:",
        "        return value is None or value is np.ma.masked or bool(value != value)\n    except (TypeError, ValueError):",
        _HOSTILE + "test_cells_that_are_no_number_are_missing", says="assert",
    ),
    _bug(
        "masked and complex cells warn", "tables/schema.py",
        "            if not isinstance(value, (str, numbers.Real, decimal.Decimal)):", "            if value is None:",
        _HOSTILE + "test_every_cell_in_every_column", says="Warning",
    ),
    _bug(
        "whole numbers that became floats get an exponent", "tables/labels.py",
        "value = math.floor(value) if value == math.floor(value) else value", "value = value + 0.0",
        "tests/datasets/test_tables.py::test_labels_and_categories_keep_their_text", says="assert",
    ),
    _bug(
        "codes that floats do not tell apart are read if none is missing", _TABLES,
        'kind.kind in "iuf"', 'kind.kind == "f"',
        _HOSTILE + "test_codes_that_floats_do_not_tell_apart_are_read_as_text", says="DID NOT RAISE",
    ),
    _bug(
        "a derived method is of the module that it names", "base/estimators.py",
        'if trusted(estimator, "privsvm"):', 'if type(estimator).__module__.startswith("privsvm."):',
        "tests/test_derived_classes.py::test_a_derived_method_proves_nothing_whatever_module_it_names", says="DID NOT RAISE",
    ),
    # --- settings, caches and databases
    _bug(
        "outputs of finished jobs are restored as they lie there", _FINISHED,
        "                and read_json(record) == _record(folder, kept)\n", "",
        _CACHE + "test_a_damaged_entry_is_made_again[a byte differs]", says="assert",
    ),
    _bug(
        "an entry of the cache is that of any job", _FINISHED,
        '{"job": folder.name, ', '{"job": "", ', _CACHE + "test_an_entry_of_another_job_is_not_restored", says="assert",
    ),
    _bug(
        "a cache on a full disk ends a job", _FINISHED,
        "except OSError as error:", "except FileNotFoundError as error:",
        _CACHE + "test_a_cache_that_cannot_be_written_ends_no_job[a full disk]", says="No space left",
    ),
    _bug(
        "a line of YAML makes it YAML 1.1", _YAML,
        "if start.version or start.tags:", "if start.tags:",
        _SETTINGS + "test_every_mistake_has_its_place", says="DID NOT RAISE",
    ),
    _bug(
        "YAML is read from whatever has the name", _YAML,
        "read_regular_file(path, _LARGEST_FILE, f\"give a readable file of at most {_LARGEST_FILE >> 10} kB\")",
        "os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), _LARGEST_FILE)",
        _SETTINGS + "test_files_that_cannot_be_read", says="Error",
    ),
    _bug(
        "YAML is composed before its values are counted", _YAML,
        "self.nodes > _MOST_VALUES or", "self.nodes < 0 or",
        _SETTINGS + "test_limits_are_counted_before_values_are_made[words]", says="assert",
    ),
    _bug(
        "keys of YAML become numbers and None", _YAML,
        "key.tag = _MERGE if key.tag == _MERGE else _TEXT", "pass",
        _SETTINGS + "test_keys_are_the_texts_that_are_written", says="assert",
    ),
    _bug(
        "whole numbers have no end", "constraints.py",
        '"maximum": 2**63 - 1 if most is None', '"maximum": 10**400 if most is None',
        _PARAMS + "test_what_is_wrong_is_one_line[a number of more than 64 bits]", says="DID NOT RAISE",
    ),
    _bug(
        "a missing class is one called None", "tables/labels.py",
        "if not (isinstance(item, str) or", "if item is not None and not (isinstance(item, str) or",
        _FOUND + "[no class]", says="DID NOT RAISE",
    ),
    _bug(
        "a fill may lie anywhere", "tables/schema.py",
        'if column.kind not in ("number", "date"):', 'if column.kind != "none":',
        _FOUND + "[a fill out of bounds]", says="DID NOT RAISE",
    ),
    _bug(
        "a database may lie anywhere", "privsvm_bench/jobs/params.py",
        "        _check_tracking_file(params.mlflow)\n", "",
        _PARAMS + "test_a_database_elsewhere_needs_the_environment", says="DID NOT RAISE",
    ),
    _bug(
        "the database of another program gets the tables of MLflow", "privsvm_bench/tracking/store.py",
        'if not {"alembic_version", "experiments"} <= tables:', "if not tables:",
        "tests/tracking/test_mlflow_log.py::test_the_database_of_another_program_is_left_alone[tables1]", says="Error",
    ),
    _bug(
        "numbers count as long as in their file", "privsvm_bench/datasets/readers.py",
        "if 8 * (math.prod", "if (math.prod",
        "tests/datasets/test_bounds.py::test_a_sparse_matrix_is_counted_as_it_is_read",
        says="DID NOT RAISE",
    ),
    _bug(
        "the reader of MATLAB files has all memory", "privsvm_bench/datasets/readers.py",
        'if sys.platform == "linux":\n        import', 'if sys.platform == "none":\n        import',
        "tests/datasets/test_bounds.py::test_the_reader_of_matlab_files_has_an_end_to_its_memory", says="DID NOT RAISE",
    ),
    _bug(
        "numbers of private tables are pushed with the others", "stages/report.py",
        'is_relative_to("data/private")', 'is_relative_to("data/raw")',
        "tests/reporting/test_report_tables.py::test_numbers_of_private_data_are_written_apart", says="assert",
    ),
)  # fmt: skip
