"""The control plane's one web application: authentication, requests of agents and of the operator, replies;
and the server for it.
"""
