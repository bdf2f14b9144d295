"""Every lab of the course, as an instructor grades it: honest answers need nothing that the isolation hides."""

from __future__ import annotations

import pytest

from llmcourse.grade.options import Options
from llmcourse.grade.reference import graded_lesson, reference
from llmcourse.grade.run import grade
from llmcourse.workbook.course import course

SEEDS = (7, 2**31 - 1)


@pytest.fixture(scope="module", params=SEEDS)
def graded(request, tmp_path_factory, namespaces):
    """Result of each notebook of solutions/ and exercises/, by folder and lesson."""
    out = tmp_path_factory.mktemp("graded")
    run = grade(
        Options(
            (course().root / "solutions", course().root / "exercises"),
            out,
            seed=request.param,
            jobs=2,
            isolation="namespace",
        )
    )
    assert run.record.not_hidden == [], "a lab imports what its answers may not see"
    return {(result["file"].split("/")[-2], result["lesson"]): result for result in run.results}


@pytest.mark.parametrize("lab", course().labs())
def test_the_solution_has_full_marks_and_no_problem(graded, lab):
    result = graded["solutions", lab[:2]]
    lost = [(test["id"], test["reason"], test["detail"]) for test in result["tests"] if test["reason"] != "ok"]
    assert (result["status"], lost, result["problems"]) == ("ok", [], [])


@pytest.mark.parametrize("lab", course().labs())
def test_the_untouched_exercise_has_no_point_and_is_not_written(graded, lab):
    result = graded["exercises", lab[:2]]
    assert (result["status"], result["score"], {test["reason"] for test in result["tests"]}) == (
        "ok",
        0,
        {"not written"},
    )


@pytest.mark.parametrize("lab", course().labs())
def test_no_probe_can_be_passed_by_guessing_true_or_false(lab):
    found = reference(course(), lab, None, 7, 1.0)
    guessable = [
        one for one, outcome in found.outcomes.items() if outcome["value"] is None or type(outcome["value"]) is bool
    ]
    assert guessable == [] and graded_lesson(course(), lab, None).probes
