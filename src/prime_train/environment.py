"""Names of the environment variables that configure the tool."""

from prime_train.configs import policy_place

HOME = policy_place.HOME


BUCKET = "PRIME_TRAIN_BUCKET"


DYNAMO = "dynamodb://"


FILE = "file:"


PROVIDER = "PRIME_TRAIN_PROVIDER"
"""The variable that names the providers of runs whose configs name none, separated by commas."""


STORE = "PRIME_TRAIN_STORE"
"""The variable for the place of the store: unset, in the home; dynamodb://table; or the address of a remote control plane."""


PUBLIC_URL = "PRIME_TRAIN_URL"


POD_PYTHON = "PRIME_TRAIN_POD_PYTHON"


MASTER = "PRIME_TRAIN_MASTER_KEY"


ROLE = "PRIME_TRAIN_POD_ROLE"
