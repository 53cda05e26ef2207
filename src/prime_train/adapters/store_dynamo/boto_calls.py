"""DynamoDB through boto3's client, which finds keys wherever AWS's tools do, and creation of the table."""

import contextlib
from collections.abc import Mapping
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

from prime_train.adapters.store_dynamo.calls import ANSWER_S_MAX, CONNECT_S_MAX, RequestRefused, Unable, Unreached
from prime_train.adapters.store_dynamo.error_conversion import external_error
from prime_train.adapters.store_dynamo.schema import DEFINITION, EXPIRES

CONNECTIONS_MAX = 32
READY = {"Delay": 1, "MaxAttempts": 60}


class BotoCalls:
    def __init__(self, client: Any) -> None:
        self._client = client

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**request)
        except (ClientError, BotoCoreError) as error:
            raise _translated(error) from None
        return answer


def create_table(client: Any, name: str) -> None:
    """Create the table, and return once it is ready; existing parts of it are not changed. Backups are not switched on here. Raises
    TemporaryError or PermanentError if it cannot be created."""
    try:
        with contextlib.suppress(client.exceptions.ResourceInUseException):
            client.create_table(TableName=name, **DEFINITION)
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=READY)
        if client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]["TimeToLiveStatus"] == "DISABLED":
            client.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRES})
    except (ClientError, BotoCoreError) as error:
        raise external_error(f"dynamodb://{name}: create_table", _translated(error)) from None


def client(session: Any, region: str, endpoint: str | None, *, answer_s: float = ANSWER_S_MAX) -> Any:
    """Return boto3's DynamoDB client without retries and with time limits in seconds; `Table` does the retries."""
    config = Config(
        connect_timeout=CONNECT_S_MAX,
        read_timeout=answer_s,
        retries={"total_max_attempts": 1},
        max_pool_connections=CONNECTIONS_MAX,
        tcp_keepalive=True,
        parameter_validation=False,
    )
    return session.client("dynamodb", region_name=region, endpoint_url=endpoint, config=config)


def _translated(error: ClientError | BotoCoreError) -> RequestRefused | Unreached | Unable:
    if isinstance(error, ClientError):
        details, response = error.response.get("Error", {}), error.response
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        item, reasons = response.get("Item"), response.get("CancellationReasons", ())
        return RequestRefused(details.get("Code", ""), details.get("Message") or "", status=status, item=item, reasons=reasons)
    return Unreached(str(error)) if isinstance(error, ConnectionError | HTTPClientError) else Unable(str(error))
