"""The control plane's two functions on AWS Lambda.

While an instance starts, the garbage collector rests: modules are made of very many objects, none of them
garbage, and searching them again and again takes a tenth of the start. The function's module switches it on
again.
"""

import gc
import os

if "AWS_LAMBDA_INITIALIZATION_TYPE" in os.environ:
    gc.disable()
