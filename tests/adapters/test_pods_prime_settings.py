"""Who we are at Prime Intellect."""

import json
from pathlib import Path

import pytest

from prime_train.adapters.pods_prime import Settings, read_settings
from prime_train.ports import PermanentError

KEY = "pit_0123456789abcdef"


def home(folder: Path, **content: object) -> Path:
    (folder / ".prime").mkdir()
    (folder / ".prime" / "config.json").write_text(json.dumps(content))
    return folder


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    there = home(tmp_path, api_key="pit_of_the_file", team_id="t1", base_url="https://other.example")
    environment = {"PRIME_API_KEY": KEY, "PRIME_TEAM_ID": "t2", "PRIME_API_BASE_URL": "https://api.example"}

    assert read_settings(environment, there) == Settings(KEY, "t2", "https://api.example")


def test_the_file_of_the_log_in_is_enough(tmp_path: Path) -> None:
    assert read_settings({}, home(tmp_path, api_key=KEY, team_id=None)) == Settings(KEY)


def test_without_a_file_the_key_alone_is_enough(tmp_path: Path) -> None:
    assert read_settings({"PRIME_API_KEY": KEY, "PRIME_TEAM_ID": " "}, tmp_path).base_url == "https://api.primeintellect.ai"


@pytest.mark.parametrize(
    "url", ["https://api.example/api/v1", "https://api.example/api/v1/", "https://api.example/", "https://api.example"]
)
def test_the_address_is_the_same_with_and_without_its_version(tmp_path: Path, url: str) -> None:
    assert read_settings({"PRIME_API_KEY": KEY, "PRIME_BASE_URL": url}, tmp_path).base_url == "https://api.example"


@pytest.mark.parametrize(
    "url", ["api.example", "ftp://api.example", "https://me:pw@api.example", "https://", "https://[x", "https://a?b=c"]
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(PermanentError, match="PRIME_API_BASE_URL"):
        read_settings({"PRIME_API_KEY": KEY, "PRIME_API_BASE_URL": url}, tmp_path)


def test_the_key_is_not_sent_unencrypted_but_to_this_machine(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="write https"):
        read_settings({"PRIME_API_KEY": KEY, "PRIME_API_BASE_URL": "http://api.example"}, tmp_path)
    assert read_settings({"PRIME_API_KEY": KEY, "PRIME_API_BASE_URL": "http://127.0.0.1:8/api/v1"}, tmp_path).base_url


def test_without_a_key_it_is_told_where_one_goes(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="PRIME_API_KEY"):
        read_settings({}, tmp_path)


@pytest.mark.parametrize("key", [f"{KEY}\n", f"{KEY} x", "pit_\u00e9"])
def test_a_key_with_a_slip_of_the_hand_is_told_without_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(PermanentError) as caught:
        read_settings({"PRIME_API_KEY": key}, tmp_path)
    assert "pit_" not in str(caught.value)


def test_a_file_that_is_no_json_is_told_without_what_is_in_it(tmp_path: Path) -> None:
    home(tmp_path)
    (tmp_path / ".prime" / "config.json").write_text(f'{{"api_key": "{KEY}"')
    with pytest.raises(PermanentError, match="is not JSON") as caught:
        read_settings({}, tmp_path)
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_another_log_in_that_is_not_read_is_not_taken_for_this_one(tmp_path: Path) -> None:
    there = home(tmp_path, api_key=KEY)
    with pytest.raises(PermanentError, match="PRIME_CONTEXT"):
        read_settings({"PRIME_CONTEXT": "work"}, there)
    assert read_settings({"PRIME_CONTEXT": "production"}, there).key == KEY
    assert read_settings({"PRIME_CONTEXT": "work", "PRIME_API_KEY": KEY}, there).key == KEY


def test_the_key_is_not_shown(tmp_path: Path) -> None:
    assert KEY not in repr(read_settings({"PRIME_API_KEY": KEY}, tmp_path))
