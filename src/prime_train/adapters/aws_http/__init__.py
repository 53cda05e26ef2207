"""AWS's services asked without a library, which would take most of a Lambda's cold start and of each warm call: HTTPS, signed.

Keys come from the environment, as every Lambda has them; for any other place to find keys there is boto3. Nothing here knows a service:
what a question holds, and what an answer means, is for whoever asks.
"""
