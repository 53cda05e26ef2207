"""DynamoDB through boto3's client, which finds keys wherever AWS's tools do, and creation of the table."""

import contextlib
from collections.abc import Mapping
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from prime_train.stores.dynamo.calls import (
    ANSWER_S_MAX,
    CONNECT_S_MAX,
    SERVER_FAILED_MIN,
    RequestRefused,
    Unable,
    Unreached,
)
from prime_train.stores.dynamo.error_conversion import external_error
from prime_train.stores.dynamo.schema import DEFINITION, EXPIRES

CONNECTIONS_MAX = 32
ERROR_MIN = 300
READY = {"Delay": 1, "MaxAttempts": 60}


class BotoCalls:
    def __init__(self, client: Any) -> None:
        self._client = client

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**request)
        except (ClientError, BotoCoreError) as error:
            raise _translated(error) from None
        except ResponseParserError:  # which repeats what was answered
            raise RequestRefused("", "the answer is not JSON", status=SERVER_FAILED_MIN) from None
        return answer


def create_table(client: Any, name: str) -> None:
    """Create the table, and return once it is ready; existing parts of it are not changed. Backups are not
    switched on here. Raises TemporaryError or PermanentError if it cannot be created.
    """
    try:
        with contextlib.suppress(client.exceptions.ResourceInUseException):
            client.create_table(TableName=name, **DEFINITION)
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=READY)
        if (
            client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"]
            == "DISABLED"
        ):
            client.update_time_to_live(
                TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRES}
            )
    except (ClientError, BotoCoreError) as error:
        raise external_error(f"dynamodb://{name}: create_table", _translated(error)) from None


def client(session: Any, region: str, endpoint: str | None, *, answer_s: float = ANSWER_S_MAX) -> Any:
    """Return boto3's DynamoDB client without retries and with time limits in seconds; `Table` does the
    retries.
    """
    config = Config(
        connect_timeout=CONNECT_S_MAX,
        read_timeout=answer_s,
        retries={"total_max_attempts": 1},
        max_pool_connections=CONNECTIONS_MAX,
        tcp_keepalive=True,
        parameter_validation=False,
    )
    made = session.client("dynamodb", region_name=region, endpoint_url=endpoint, config=config)
    made.meta.events.register("before-parse.dynamodb", _check_form)
    return made


def _check_form(response_dict: dict[str, Any], **_: Any) -> None:
    """Raise ResponseParserError for an answer that is not JSON, such as a proxy's page: botocore would take
    it for one without items.
    """
    body: bytes = response_dict["body"]
    if response_dict["status_code"] < ERROR_MIN and not (body.startswith(b"{") and body.endswith(b"}")):
        raise ResponseParserError("the answer is not JSON")


def _translated(error: ClientError | BotoCoreError) -> RequestRefused | Unreached | Unable:
    if isinstance(error, ClientError):
        details, response = error.response.get("Error", {}), error.response
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        item, reasons = response.get("Item"), response.get("CancellationReasons", ())
        return RequestRefused(
            details.get("Code", ""), details.get("Message") or "", status=status, item=item, reasons=reasons
        )
    return (
        Unreached(str(error)) if isinstance(error, ConnectionError | HTTPClientError) else Unable(str(error))
    )
