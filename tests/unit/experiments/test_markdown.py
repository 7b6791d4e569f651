"""Tables for pages."""

from __future__ import annotations

from experiments.results.markdown import markdown_table


def test_a_table_has_a_head_a_rule_and_a_line_for_each_row() -> None:
    rows = (row for row in [["none", "1"], ["dasec", "2"]])
    assert markdown_table(["arm", "mean"], rows) == (
        "| arm | mean |\n| --- | --- |\n| none | 1 |\n| dasec | 2 |"
    )
