"""Guards of Vowpal Wabbit's lines, and of names as it hashes them."""

GUARDS = [
    (
        "a name of digits is a number to VW", "native/decode/vw_hash.h",
        "if (!number_text::is_digit(*at)) return", "return",
        "tests/columns/test_sparse.py::test_native_and_slow_agree_cut_at_every_byte_and_mutated[vw]",
    ),
    (
        "a program's names are in a column's first namespace", "native/decode/kinds/sparse.h",
        'namespaces_.empty() ? "" : namespaces_.front()', 'namespaces_.empty() ? "" : namespaces_.back()',
        "tests/columns/test_vw_namespaces.py::test_names_of_a_program_are_vws",
    ),
    (
        "a column has the bits of its records", "streamtrain/job/engine.py",
        "of_records |= formats.of_columns(file.records.named)", "formats.of_columns(file.records.named)",
        "tests/columns/test_vw_namespaces.py::test_a_jobs_columns_have_its_records_bits",
    ),
    (
        "a namespace of VW's lines is one column's", "native/decode/formats/vw.h",
        "if (!column_of_.empty() && !is_own({p, static_cast<u64>(name - p)})) return behind_namespace(name, end);", "",
        "tests/columns/test_vw_namespaces.py::test_each_column_has_its_namespaces_and_one_the_others",
    ),
]
