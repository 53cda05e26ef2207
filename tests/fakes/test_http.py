"""The server that all fakes of HTTP APIs are based on."""

import http.client
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.fakes.http import (
    TRUNCATED,
    CutRequest,
    Delay,
    Fault,
    Hang,
    HttpFake,
    Json,
    LoseResponse,
    Refusal,
    Replace,
    Request,
    Response,
    Rewrite,
    Route,
    ScriptedServer,
    Stall,
    json_response,
)

ANSWER_S_MAX = 60.0


class Shelf(HttpFake):
    """A fake with books by number, and the content of their files."""

    prefix = "/v1"

    def __init__(self) -> None:
        super().__init__()
        self.books: dict[int, Any] = {}

    def put_book(self, request: Request) -> Json:
        self.books[request.params["number"]] = request.json
        return {"books": len(self.books)}

    def get_book(self, request: Request) -> Json:
        if request.params["number"] not in self.books:
            raise Refusal(json_response({"error": "no such book"}, 404, {"Retry-After": "7"}))
        return {"book": self.books[request.params["number"]]}

    def delete_book(self, request: Request) -> Response:
        del self.books[request.params["number"]]
        return Response(204)

    def get_file(self, request: Request) -> Json:
        return dict(request.params) | {"query": request.query}

    routes = (
        Route("PUT", "/books/{number:int}", put_book),
        Route("GET", "/books/{number:int}", get_book),
        Route("DELETE", "/books/{number:int}", delete_book),
        Route("GET", "/shelves/{shelf}/files/{name:path}", get_file),
    )


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Shelf() as shelf:
        yield shelf


def ask(fake: HttpFake, method: str, path: str, body: object = None) -> requests.Response:
    return requests.request(method, f"{fake.url}/v1{path}", json=body, timeout=ANSWER_S_MAX)


def later(
    fake: HttpFake, method: str, path: str, body: object = None
) -> tuple[threading.Thread, list[requests.Response | None]]:
    """Send the request in a thread; return the thread, and the list that gets the response, or None if the
    connection was cut.
    """
    got: list[requests.Response | None] = []

    def run() -> None:
        try:
            got.append(ask(fake, method, path, body))
        except requests.ConnectionError:
            got.append(None)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, got


def test_a_route_gets_what_stands_in_its_path(shelf: Shelf) -> None:
    assert ask(shelf, "PUT", "/books/7", {"title": "Emma"}).json() == {"books": 1}
    assert ask(shelf, "GET", "/books/7").json() == {"book": {"title": "Emma"}}
    found = ask(shelf, "GET", "/shelves/top%20left/files/a/b.txt?page=2&page=3").json()
    assert found == {"shelf": "top left", "name": "a/b.txt", "query": {"page": "3"}}
    assert ask(shelf, "DELETE", "/books/7").status_code == 204
    assert [(each.method, each.path, each.status) for each in shelf.requests_to("DELETE", "/books/7")] == [
        ("DELETE", "/books/7", 204)
    ]


def test_what_no_route_has_and_what_a_handler_refuses_is_reported(shelf: Shelf) -> None:
    assert (ask(shelf, "GET", "/books/seven").status_code, ask(shelf, "POST", "/books/7").status_code) == (
        404,
        404,
    )
    refused = ask(shelf, "GET", "/books/7")
    assert (refused.status_code, refused.json(), refused.headers["Retry-After"]) == (
        404,
        {"error": "no such book"},
        "7",
    )


def test_requests_share_a_connection_and_a_head_has_no_body(shelf: Shelf) -> None:
    at = http.client.HTTPConnection("127.0.0.1", shelf.port, timeout=ANSWER_S_MAX)
    at.connect()
    first = at.sock
    for method in ("PUT", "HEAD", "GET"):
        at.request(method, "/v1/books/1", body=b"1")
        at.getresponse().read()
        assert at.sock is first
    at.close()


@pytest.mark.parametrize(
    ("fault", "done"),
    [(CutRequest(), False), (Response(503), False), (LoseResponse(), True), (Replace(Response(502)), True)],
)
def test_a_fault_says_whether_what_was_requested_is_done(shelf: Shelf, fault: Fault, done: bool) -> None:
    shelf.fail(fault, method="PUT")
    thread, got = later(shelf, "PUT", "/books/1", 1)
    thread.join()
    status = (
        fault.status
        if isinstance(fault, Response)
        else fault.response.status
        if isinstance(fault, Replace)
        else None
    )
    assert [each.status_code if each is not None else None for each in got] == [status]
    assert (shelf.requests[0].status, bool(shelf.books)) == (status or 0, done)
    assert ask(shelf, "PUT", "/books/1", 1).status_code == 200


def test_a_fault_is_met_by_those_requests_that_it_was_made_for(shelf: Shelf) -> None:
    shelf.fail(Response(500), method="PUT", path="/books/1", first=2, times=2)
    shelf.fail(Response(429), method="PUT", path="/books/", first=3)
    numbers = (10, 2, 11, 12, 13)
    assert [ask(shelf, "PUT", f"/books/{number}", 1).status_code for number in numbers] == [
        200,
        200,
        500,
        500,
        200,
    ]


@pytest.mark.parametrize(
    ("fault", "done", "status"), [(Hang(), False, None), (Hang(done=True), True, None), (Delay(), True, 200)]
)
@pytest.mark.parametrize("ends", [False, True])
def test_what_hangs_goes_on_when_the_fake_is_healed_or_ends(
    fault: Fault, done: bool, status: int | None, ends: bool
) -> None:
    with Shelf() as shelf:
        shelf.fail(fault, method="PUT")
        thread, got = later(shelf, "PUT", "/books/1", 1)
        shelf.await_requests("PUT", "/books/1")
        assert (got, bool(shelf.books)) == ([], fault == Hang(done=True))
        assert ask(shelf, "GET", "/books/2").status_code == 404
        if not ends:
            shelf.heal()
            thread.join()
    thread.join()
    assert ([each.status_code if each is not None else None for each in got], bool(shelf.books)) == (
        [status],
        done,
    )


def test_a_body_can_be_stalled_in_its_middle_or_changed(shelf: Shelf) -> None:
    with ScriptedServer(Response(200, b"first|second")) as there:
        shelf.books[1] = "a title"
        shelf.fail(Stall(), method="GET")
        at = http.client.HTTPConnection("127.0.0.1", shelf.port, timeout=ANSWER_S_MAX)
        at.request("GET", "/v1/books/1")
        answer = at.getresponse()
        assert answer.read(9) == b'{"book": '
        shelf.heal()
        assert answer.read() == b'"a title"}'
        at.close()
        shelf.fail(TRUNCATED)
        assert ask(shelf, "GET", "/books/1").content == b'{"book": '
        shelf.fail(Rewrite(lambda response: Response(response.status, response.body.replace(b"a", b"?"))))
        assert ask(shelf, "GET", "/books/1").json() == {"book": "? title"}
        assert ask(there, "GET", "/").content == b"first|second"


def test_a_wait_for_requests_that_do_not_come_says_what_came(shelf: Shelf) -> None:
    ask(shelf, "GET", "/books/1")
    with pytest.raises(
        AssertionError, match=r"2 of GET /books/1 did not come within 0 s.*'GET /books/1 404'"
    ):
        shelf.await_requests("GET", "/books/1", 2, limit_s=0.0)


def test_a_length_that_is_not_the_bodys_ends_the_connection() -> None:
    with (
        ScriptedServer(Response(200, b"half", headers={"Content-Length": "100"})) as there,
        pytest.raises(requests.exceptions.ChunkedEncodingError),
    ):
        ask(there, "GET", "/")


def test_what_breaks_in_a_fake_breaks_the_test() -> None:
    with (
        pytest.raises(AssertionError, match="KeyError: 1"),
        Shelf() as shelf,
        pytest.raises(requests.ConnectionError),
    ):
        ask(shelf, "DELETE", "/books/1")


def test_a_fake_that_has_ended_listens_no_more_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with Shelf() as shelf:
        at = http.client.HTTPConnection("127.0.0.1", shelf.port, timeout=ANSWER_S_MAX)
        at.request("GET", "/v1/books/1")
        at.getresponse().read()
    assert threading.active_count() == before
    at.close()
    with pytest.raises(requests.ConnectionError):
        ask(shelf, "GET", "/books/1")
