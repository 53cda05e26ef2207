"""Errors of services and networks: refused rights, services that do not answer, and peers that are gone."""

from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.table import CONSEQUENCE, HINT, known

RULES = (
    *known(
        Cause.ACCESS_DENIED,
        "huggingface_hub, huggingface_hub/errors.py, with requests and with httpx",
        (
            r"GatedRepoError|(Cannot access|trying to access a) gated repo|Access to model .* is restricted",
            "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1)",
        ),
        (
            r"Repository Not Found for url|RepositoryNotFoundError",
            "huggingface_hub.errors.RepositoryNotFoundError: Repository Not Found for url: "
            "https://huggingface.co/api/models/a/b.",
        ),
        (
            r"\b40[13] Client Error\b|Client error '40[13] |Error code: 40[13]\b|HTTP (Error|status) "
            r"40[13]\b|status[ =:]+40[13]\b",
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: "
            "https://huggingface.co/api/whoami-v2",
        ),
        (
            r"\b40[13] (Unauthorized|Forbidden)|: (Unauthorized|Forbidden)$|\(403\) when calling|You don't "
            r"have the rights"
            r"|Invalid user token|Invalid username or password|Token is required|LocalTokenNotFoundError|"
            r"Invalid credentials in "
            r"Authorization",
            "ValueError: Invalid user token. If you didn't pass a user token, make sure you are properly "
            "logged in",
        ),
    ),
    *known(
        Cause.ACCESS_DENIED,
        "W&B, wandb/errors and its back end's answers",
        (
            r"do not have permission to access the requested resource|wandb\S*: .*(API key [^\n]{0,40}"
            r"(fail|invalid|rejected|expired|missing|revoked|not (valid|recognized|found|accepted)|must)|"
            r"([Ii]nvalid|[Pp]aste an) API key"
            r"|[Pp]ermission denied|PERMISSION_ERROR|not logged in|[Uu]nauthorized)"
            r"|API key (verification failed|must be|is either invalid)",
            "wandb: ERROR API key verification failed for host https://api.wandb.ai.",
        ),
        (
            r"wandb\.errors\.(errors\.)?AuthenticationError",
            "wandb.errors.errors.AuthenticationError: API key verification failed",
        ),
        (
            r"(entity|project) \S+ not found|wandb.*returned error 40[134]|wandb.*Error 40[134]\b",
            "wandb.errors.CommError: Error uploading run: returned error 404: entity teamx not found during "
            "upsertBucket",
        ),
    ),
    *known(
        Cause.ACCESS_DENIED,
        "boto3, s3fs and Arrow with S3; google-cloud-storage and gcsfs; azure-storage-blob; rclone",
        (
            r"\bAccessDenied(Exception)?\b|ACCESS_DENIED|\bAccess Denied\b|Forbidden: 403|"
            r"\(403\).*(HeadObject|HeadBucket)|HTTPForbidden",
            "botocore.errorfactory.AccessDenied: An error occurred (AccessDenied) when calling the PutObject "
            "operation: Access Denied",
        ),
        (
            r"ExpiredToken|InvalidAccessKeyId|SignatureDoesNotMatch|InvalidToken|UnrecognizedClient|"
            r"AuthFailure"
            r"|InvalidClientTokenId|TokenRefreshRequired|UnauthorizedSSOToken",
            "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject "
            "operation",
        ),
        (
            r"NoCredentials(Error)?|Unable to locate credentials|PartialCredentialsError|"
            r"DefaultCredentialsError|RefreshError"
            r"|could not (find|automatically determine) .*credentials|CredentialUnavailableError",
            "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
        ),
        (
            r"does not have storage\.\S+ access|Permission '[^']+' denied|Anonymous caller",
            "google.api_core.exceptions.Forbidden: sa does not have storage.objects.get access",
        ),
        (
            r"not authorized to perform|AuthorizationPermissionMismatch|AuthorizationFailure|"
            r"AuthenticationFailed"
            r"|ClientAuthenticationError|InsufficientAccountPermissions",
            "azure.core.exceptions.HttpResponseError: This request is not authorized to perform this "
            "operation using this permission.",
        ),
    ),
    *known(
        Cause.ACCESS_DENIED,
        "AWS Signature Version 4: the clock of this machine is wrong",
        (
            r"RequestTimeTooSkewed|RequestExpired|Signature not yet current",
            "botocore.exceptions.ClientError: An error occurred (RequestTimeTooSkewed) when calling the "
            "PutObject operation",
        ),
        action=Action.ANOTHER_MACHINE,
    ),
    *known(
        Cause.ACCESS_DENIED,
        "git, OpenSSH and OpenAI's client",
        (
            r"Permission denied \(publickey|Authentication failed for '|could not read Username for|remote: "
            r"(Repository not "
            r"found|Invalid username or)|Host key verification failed",
            "fatal: Authentication failed for 'https://github.com/a/b.git/'",
        ),
        (
            r"(openai|anthropic)\.(AuthenticationError|PermissionDeniedError)|Incorrect API key provided|"
            r"insufficient_quota",
            "openai.AuthenticationError: Error code: 401 - Incorrect API key provided",
        ),
    ),
    *known(
        Cause.ACCESS_DENIED,
        "Any client of a service: the words for a key, a token or a login that is refused",
        (
            r"(?i)\b(invalid|bad|expired|missing|wrong|incorrect) (credentials?\b|api[ _-]?keys?\b|access[ "
            r"_-]?(key|token)s?\b|auth\w* "
            r"tokens?\b|passwords?\b)|\b(credentials?|api[ _-]?key|(access|auth\w*|session|security) token) "
            r"(has |have |is |are |was )?"
            r"(expired|revoked|invalid\b|not valid)|\btoken (has |is |was )?(expired|revoked)\b|"
            r"authentication (is "
            r")?(required|failed)|\b(is|are|was|request|user|caller) (un|not )authenticated\b|you (must|need "
            r"to) (be "
            r"logged|log) ?in|please log ?in\b",
            "gcsfs.retry.HttpError: Invalid Credentials, 401",
        ),
        (
            r"(?i)\b(error|status|response|http)[ _-]?(code)?[ :=]+40[13]\b",
            "mlflow.exceptions.MlflowException: API request to http://mlflow:5000/api failed with error code "
            "403 != 200",
        ),
        raised_only=True,
    ),
    *known(
        Cause.ACCESS_DENIED,
        "Linux errno 13 and 1, also by TensorFlow",
        (
            r"errors_impl\.PermissionDeniedError: .*Permission denied$",
            "tensorflow.python.framework.errors_impl.PermissionDeniedError: Failed to create a directory: "
            "/logs; Permission denied",
        ),
        (
            r"PermissionError: \[Errno (13|1)\]",
            "PermissionError: [Errno 13] Permission denied: '/root/.cache'",
        ),
    ),
    *known(
        Cause.INFERENCE_FAILED,
        "vLLM, vllm/v1/engine and async_llm_engine.py: the server beside the trainer ended",
        (
            r"EngineDeadError|Background loop has errored|Engine core proc \S+ died unexpectedly|"
            r"AsyncEngineDeadError"
            r"|MQEngineDeadError|EngineCore (failed to start|encountered)",
            "vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored already.",
        ),
        (
            r"Engine (core|process) initialization failed|Engine process failed to start|WorkerProc "
            r"initialization failed|Failed core proc",
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        ),
        strength=CONSEQUENCE,
    ),
    *known(
        Cause.INFERENCE_FAILED,
        "SGLang, TRL's VLLMClient, verl and AReaL: the server beside the trainer is not up",
        (
            r"Server failed to start within|Server process terminated|Initialization failed.*(warmup|launch)|"
            r"[Tt]imeout waiting "
            r"for (rollout|inference|vllm|sglang|the) ?\w* ?servers?",
            "TimeoutError: Server failed to start within the timeout period: 300 seconds.",
        ),
        (
            r"(?i)\b(server|engine|scheduler|detokenizer) (launch|start-?up|initiali[sz]ation) failed|failed "
            r"to (launch|start|initiali[sz]"
            r"e) (the )?((inference|rollout|vllm|sglang|llm|generation) )?(server|engine)\b|\b(scheduler|"
            r"detokenizer|(inference|rollout"
            r"|vllm|sglang) (engine|server|worker)) (process )?(is dead|has died|died|crashed)",
            "RuntimeError: server launch failed",
        ),
        (
            r"(vLLM|inference|SGLang|sglang|rollout) server (can't|cannot|could not) be reached|(vLLM|"
            r"inference|SGLang|rollout) "
            r"server .*(died|crashed|exited|not ready|unhealthy)",
            "ConnectionError: The vLLM server can't be reached at http://localhost:8000 after 240.0 seconds.",
        ),
        (
            r"(host='|to host |://)(0\.0\.0\.0|127\.0\.0\.\d+|localhost)\b.*(Max retries exceeded|Connection "
            r"refused|Connect "
            r"call failed|Cannot connect|[Tt]imed out|Errno 111)|Cannot connect to host (0\.0\.0\.0|"
            r"127\.0\.0\.\d+|localhost)\b",
            "requests.exceptions.ConnectionError: HTTPConnectionPool(host='0.0.0.0', port=8000): Max retries "
            "exceeded with url: /generate/",
        ),
        strength=HINT,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "Ray, placement groups and actors that were left over of the start before",
        (
            r"placement group name .* already exists|Failed to look up actor with name|name .* is already "
            r"taken",
            "ValueError: Failed to look up actor with name 'x'. placement group name global_pool_4:0 already "
            "exists",
        ),
        action=Action.SAME_MACHINE,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "huggingface_hub, transformers, hf_xet, tiktoken and openai_harmony",
        (
            r"LocalEntryNotFoundError|We couldn't connect to '|Can(no|')t (load|reach) .*(internet|"
            r"connection)|check your "
            r"(internet )?connection",
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find "
            "them in the cached files.",
        ),
        (
            r"Consistency check failed: file should be of size",
            "OSError: Consistency check failed: file should be of size 4976698672 but has size 1073741824 "
            "(model.safetensors).",
        ),
        (
            r"CAS service error|Data processing error: .*(Request|Reqwest|network|timed? ?out)|"
            r"ReqwestMiddleware",
            "RuntimeError: Data processing error: CAS service error : ReqwestMiddleware Error: Request "
            "failed after 5 retries",
        ),
        (
            r"(downloading or loading|failed to download or load) vocab file",
            "openai_harmony.HarmonyError: error downloading or loading vocab file: failed to download or "
            "load vocab file",
        ),
        (
            r"We had to rate limit|[Rr]ate[ -]?limit(ed| exceeded| reached)|RateLimitError|TooManyRequests",
            "We had to rate limit your IP (1.2.3.4).",
        ),
        (
            r"HfHubHTTPError: 5\d\d",
            "huggingface_hub.errors.HfHubHTTPError: 503 Server Error: Service Unavailable",
        ),
        strength=HINT,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "requests, urllib3, urllib, httpx, httpcore and aiohttp",
        (
            r"\b(429|408) Client Error\b|\b5\d\d Server Error\b|Client error '(429|408)|Server error '5\d\d|"
            r"HTTP Error (429"
            r"|5\d\d)\b|Error code: (429|5\d\d)\b|too many 5\d\d error responses",
            "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: "
            "https://huggingface.co/a",
        ),
        (
            r"Read timed out|[Rr]ead operation timed out|Temporary failure in name resolution|Name or "
            r"service not known|Max "
            r"retries exceeded with url|No address associated with hostname",
            "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='huggingface.co', port=443): Read "
            "timed out. (read timeout=10)",
        ),
        (
            r"\b(httpx|httpcore)\.\w*(Connect|Read|Write|Pool|Network|RemoteProtocol|Proxy)\w*(Error|"
            r"Timeout)?"
            r"|httpx\.TimeoutException|httpx\.LocalProtocolError",
            "httpx.ConnectError: [Errno -3] Temporary failure in name resolution",
        ),
        (
            r"aiohttp\.\S*(ClientConnect\w*Error|ServerDisconnected|ServerTimeout|ClientPayloadError|"
            r"ClientOSError"
            r"|ConnectionTimeout|ClientResponseError)",
            "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected",
        ),
        (
            r"requests\.exceptions\.(ConnectionError|ConnectTimeout|ReadTimeout|Timeout|ChunkedEncodingError|"
            r"SSLError"
            r"|ProxyError|JSONDecodeError)|ssl\.SSL\w*Error|SSLEOFError|SSLError\(|urlopen error|"
            r"urllib3\.exceptions\.",
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443)",
        ),
        (
            r"IncompleteRead|RemoteDisconnected|Remote end closed connection|peer closed connection|Network "
            r"is unreachable|No "
            r"route to host|[Nn]ame resolution|FSTimeoutError|Failed to (establish|resolve)",
            "urllib3.exceptions.ProtocolError: ('Connection broken: IncompleteRead(1048576 bytes read)', "
            "IncompleteRead(1048576 bytes read))",
        ),
        strength=HINT,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "W&B: a time-out or an outage is no refused key",
        (
            r"wandb\.errors\.(errors\.)?CommError: .*(timed? ?out|timeout|Error communicating|retry|50\d)|"
            r"Run initialization "
            r"has timed out|ServiceStart(Timeout|Process|Port)Error|wandb service to start|Error "
            r"communicating with wandb "
            r"process|wandb\.\S*Error: .*(Network error|50[0234])",
            "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.",
        ),
        strength=HINT,
    ),
    # Its own name says that W&B is used wrongly, which it is not.
    *known(
        Cause.NETWORK_ERROR,
        "W&B, wandb/sdk/wandb_init.py: its process does not answer",
        (
            r"UsageError: Error communicating with wandb process",
            "wandb.errors.UsageError: Error communicating with wandb process",
        ),
    ),
    *known(
        Cause.NETWORK_ERROR,
        "W&B of the years before 2021: its process did not start in time",
        (
            r"W&B process (failed to launch|\(PID \d+\) did not respond)|wandb\S*\.LaunchError",
            "wandb.run_manager.LaunchError: W&B process failed to launch, see: wandb/debug.log",
        ),
        strength=HINT,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "TensorFlow and PyTorch/XLA: the status with which a remote worker is lost",
        (
            r"\((Aborted|Unavailable|Deadline Exceeded|Cancelled): |errors_impl\.(Aborted|Unavailable|"
            r"DeadlineExceeded|Cancelled)Error",
            "RuntimeError: Check failed: session->Run(feed) == OK() (Aborted: Session ab7644a8c1cef902 is "
            "not found. vs. OK)",
        ),
        action=Action.ANOTHER_MACHINE,
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.BAD_CONFIG,
        "requests, httpx and OpenAI's client: the service refuses the request itself, and would refuse it "
        "again",
        (
            r"\b4(00|04|05|10|13|15|22) Client Error\b|Client error '4(00|04|05|10|13|15|22) |\bError code: "
            r"4(00|04|05|13|22)\b"
            r"|\bHTTP Error 4(00|04|05|10)\b|\b(BadRequest|UnprocessableEntity)Error: ",
            "requests.exceptions.HTTPError: 400 Client Error: Bad Request for url: "
            "https://huggingface.co/api/models/a/b/commit/main",
        ),
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "boto3, google-cloud-storage, azure, git, curl, wget, apt and pip: an outage, or throttled",
        (
            r"ResponseStreamingError|ProxyConnectionError|botocore\.exceptions\.HTTPClientError|"
            r"botocore\.exceptions\.SSLError|ObjectStoreTransientError"
            r"|EndpointConnectionError|ConnectTimeoutError|ReadTimeoutError|ConnectionClosedError|"
            r"\((SlowDown|InternalError"
            r"|ServiceUnavailable|RequestTimeout|Throttling\w*|503|500)\)|Reduce your request rate",
            "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject "
            "operation (reached max retries: 4)",
        ),
        (
            r"google\.\S*(ServiceUnavailable|TooManyRequests|InternalServerError|BadGateway|GatewayTimeout|"
            r"RetryError)"
            r"|ServiceRequestError|ServiceResponseError|ServerBusy|OperationTimedOut",
            "google.api_core.exceptions.ServiceUnavailable: 503 GET https://storage.googleapis.com/b/x",
        ),
        (
            r"Could not resolve host|unable to access 'https?://|early EOF|RPC failed|The remote end hung up|"
            r"curl: \(\d+\)"
            r"|Temporary failure resolving|Connection to \S+ timed out",
            "fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com",
        ),
        (
            r"openai\.(APIConnectionError|APITimeoutError|InternalServerError)|anthropic\.(APIConnectionError"
            r"|InternalServerError)|grpc.*(UNAVAILABLE|DEADLINE_EXCEEDED)",
            "openai.APIConnectionError: Connection error.",
        ),
        (
            r"Client rate limiter Wait returned an error|Could not reach .* server|failed to pull image|"
            r"ErrImagePull|toomanyrequests",
            "toomanyrequests: You have reached your pull rate limit.",
        ),
        strength=HINT,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "Any client of a service: the words for a service that is not reached, throttles or is down",
        (
            r"(?i)could(n't| not) (connect|reach)|unreachable|connect(ion)? ?(error($|[^ ]| [^c])|timeout|"
            r"refused|aborted|timed out)"
            r"|giving up after \d+ attempt|Client\.Timeout|context deadline exceeded|i/o timeout|TLS "
            r"handshake timeout",
            "ConnectionError: Couldn't reach 'a/b' on the Hub (ConnectTimeout)",
        ),
        (
            r"(?i)\b(error|status|response|http)[ _-]?(code)?[ :=]+(429|408|500|502|503|504)\b",
            "mlflow.exceptions.MlflowException: API request to http://mlflow:5000/api failed with error code "
            "502 != 200",
        ),
        (
            r"(?i)too many requests|internal server error|bad gateway|service (is )?(temporarily "
            r")?unavailable|gateway "
            r"time-?out|temporarily unavailable|server is busy|overloaded|quota exceeded for"
            r"|\bthrottl(ed|ing)\b|reduce your request rate|(try|retry) again later",
            "RuntimeError: 503: service is temporarily unavailable",
        ),
        strength=HINT,
        raised_only=True,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "JAX, its coordination service and XLA's status codes",
        (
            r"XlaRuntimeError: (DEADLINE_EXCEEDED|UNAVAILABLE|ABORTED|CANCELLED)|coordination service|"
            r"Barrier timed out"
            r"|PjRT_Client_Connect",
            "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: "
            "[Init]PjRT_Client_Connect.",
        ),
        action=Action.ANOTHER_MACHINE,
        strength=CONSEQUENCE,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "NCCL, Gloo and PyTorch's c10d: the processes do not reach one another",
        (
            r"ncclSystemError|NCCL error: unhandled system error|unhandled system error",
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device "
            "error.",
        ),
        (
            r"ncclRemoteError|remote process exited or there was a network error|ncclInternalError|"
            r"ncclInProgress"
            r"|\bNCCL error\b.*\binternal error\b",
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
            "prematurely.",
        ),
        (
            r"DistNetworkError|DistStoreError|RendezvousTimeoutError|RendezvousConnectionError|"
            r"RendezvousClosedError|client "
            r"socket has (timed out|failed to connect)|waiting for clients|[Ss]tore.*wait timeout after",
            "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms",
        ),
        (
            r"Connection reset by peer|Connection closed by (remote )?peer|Broken pipe|[Tt]ransport retry "
            r"count|RETRY_EXC_ERR|UCX +ERROR"
            r"|Gloo connect\w+ failed|[Gg]loo.*(timed "
            r"out|failed)|Bootstrap : no socket interface found|NET/(IB|Socket)|ibv_\w+ failed",
            "RuntimeError: Connection reset by peer",
        ),
        action=Action.ANOTHER_MACHINE,
        strength=CONSEQUENCE,
    ),
    *known(
        Cause.COLLECTIVE_TIMEOUT,
        "PyTorch, ProcessGroupNCCL.cpp and Gloo's unbound_buffer.cc",
        (
            r"Watchdog caught collective operation timeout",
            "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, "
            "NumelIn=1, Timeout(ms)=600000)",
        ),
        (
            r"Some NCCL operations have failed or timed out",
            "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels",
        ),
        (
            r"NCCL watchdog thread terminated with exception",
            "[PG 0 Rank 1] NCCL watchdog thread terminated with exception: CUDA error",
        ),
        (
            r"monitoring thread detects no heartbeat and will finally kill the process",
            "ProcessGroupNCCL's monitoring thread detects no heartbeat and will finally kill the process",
        ),
        (
            r"Terminating the process after attempting to dump debug info",
            "Terminating the process after attempting to dump debug info, due to collective timeout or "
            "exception.",
        ),
        (
            r"Timed out waiting \d+ms for (recv|send) operation to complete",
            "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 1800000ms for recv "
            "operation to complete",
        ),
        strength=CONSEQUENCE,
    ),
    *known(
        Cause.KILLED,
        "Ray, src/ray/core_worker: a worker's process is gone without a word, mostly because the machine's "
        "memory ran out",
        (
            r"ray\.exceptions\.WorkerCrashedError|Worker exit type: SYSTEM_ERROR|its worker process has died"
            r"|ray\.exceptions\.(ActorDiedError|RayActorError): The actor died unexpectedly"
            r"|A worker died or was killed while executing a task by an unexpected system error",
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
        ),
        strength=CONSEQUENCE,
    ),
    *known(
        Cause.TRAINER_ERROR,
        "Ray, SGLang and AReaL: a process of the training ended, for a reason that is above",
        (
            r"SIGQUIT received\.|Received sigquit from a child proc",
            "SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
        ),
        (
            r"Worker '[^']+' failed with exit code -?\d+|Failed to create worker",
            "Worker 'rollout/0' failed with exit code -9",
        ),
        (r"Timeout waiting for worker '", "TimeoutError: Timeout waiting for worker 'rollout/0'"),
        (
            r"ray\.exceptions\.(\w*Actor\w*Error|ObjectStoreFullError|ObjectLostError|NodeDiedError|"
            r"OwnerDiedError)",
            "ray.exceptions.ObjectLostError: Failed to retrieve object 00ffff",
        ),
        strength=CONSEQUENCE,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "Any client: a time-out that names no service, which may also be the trainer's own",
        (r"(?i)^\S*(timeout\w*|timedout)(: |$)|\btimed? ?out\b", "asyncio.exceptions.TimeoutError"),
        action=Action.SAME_MACHINE,
        strength=CONSEQUENCE,
        raised_only=True,
    ),
    *known(
        Cause.NETWORK_ERROR,
        "Any client of a service, by the names of its exceptions",
        (
            r"^([A-Za-z_]\w*\.)+\w*(Connection(Lost|Error|Exception|Failed)|ConnectError|Unreachable|"
            r"ServiceUnavailable|RateLimit|Throttl"
            r"|TooManyRequests|ServerError|Offline)\w*:",
            "neptune.new.exceptions.NeptuneConnectionLostException:",
        ),
        strength=CONSEQUENCE,
    ),
)
