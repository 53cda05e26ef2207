"""The URL of a run's page in its tracker."""

from dataclasses import replace
from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.runs.links import links, origin_url, page_url
from prime_train.runs.run import Origin, Run
from tests import builders as b
from tests.core.given import PROPERTY


def of(**wandb: str) -> str:
    return page_url(b.run(spec=b.spec(wandb={"project": "train"} | wandb)))


def test_the_page_of_a_run_is_where_its_project_is() -> None:
    assert of(entity="acme") == "https://wandb.ai/acme/train/runs/tiny-1"
    run = b.run(spec=b.spec(wandb={"project": "a b"}))
    assert (
        page_url(run, entity="ann", site="https://wandb.acme.test/")
        == "https://wandb.acme.test/ann/a%20b/runs/tiny-1"
    )


def test_a_w_and_b_of_ones_own_and_an_entity_may_stand_in_the_environment() -> None:
    spec = b.spec(
        wandb={"project": "train"},
        environment={"WANDB_ENTITY": "ann", "WANDB_BASE_URL": "https://wandb.acme.test/"},
    )
    assert page_url(b.run(spec=spec)) == "https://wandb.acme.test/ann/train/runs/tiny-1"
    unusual = b.spec(
        wandb={"project": "train", "entity": "ann"}, environment={"WANDB_BASE_URL": "https://x>|y"}
    )
    assert page_url(b.run(spec=unusual)) == "https://wandb.ai/ann/train/runs/tiny-1"


@pytest.mark.parametrize("run", [b.run(), b.run(spec=b.spec(wandb={"project": "train"}))])
def test_there_is_no_page_where_there_is_no_tracker_or_nobody_says_whose_it_is(run: Run) -> None:
    assert page_url(run) == ""


ORIGIN = Origin("acme/models", "c0ffee", "configs/my run.yaml", "key")


@pytest.mark.parametrize(
    ("origin", "url"),
    [
        (None, ""),
        (ORIGIN, "https://github.com/acme/models/blob/c0ffee/configs/my%20run.yaml"),
        (replace(ORIGIN, pull=7), "https://github.com/acme/models/pull/7"),
        (
            replace(ORIGIN, pull=7, job_url="https://git.acme.test/acme/models/actions/runs/1"),
            "https://git.acme.test/acme/models/pull/7",
        ),
        (
            replace(ORIGIN, pull=7, job_url="javascript:x>|y/acme/models/"),
            "https://github.com/acme/models/pull/7",
        ),
    ],
)
def test_a_run_leads_back_to_where_it_was_requested(origin: Origin | None, url: str) -> None:
    assert origin_url(b.run(origin=origin)) == url


def test_only_what_is_there_is_linked() -> None:
    assert links(b.run()) == ()
    run = b.run(spec=b.spec(wandb={"project": "train", "entity": "acme"}), origin=replace(ORIGIN, pull=7))
    assert dict(links(run)) == {"W&B": page_url(run), "pull request": origin_url(run)}


def test_an_address_that_no_message_has_room_for_is_left_out() -> None:
    assert links(b.run(origin=replace(ORIGIN, config="ä" * 200))) == ()


@PROPERTY
@given(config=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_no_character_of_a_link_means_anything_anywhere(config: str) -> None:
    url = origin_url(b.run(origin=replace(ORIGIN, config=config)))
    assert not set("<>|()[]\"' \n") & set(url)


@PROPERTY
@given(project=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_name_is_one_piece_of_the_path(project: str) -> None:
    url = of(entity="acme", project=project)
    assert url == f"https://wandb.ai/acme/{quote(project, safe='')}/runs/tiny-1"
    assert unquote(urlsplit(url).path) == f"/acme/{project}/runs/tiny-1"
