"""Requests to AWS's services without boto3, which would take most of a Lambda's cold start and of each warm call: HTTPS, signed.

Keys come from the environment, as in every Lambda; use boto3 where keys must be found elsewhere. This package contains nothing specific to
a service: the caller builds the request and interprets the response.
"""
