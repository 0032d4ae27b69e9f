"""The native runner wire: JSON-RPC 2.0, one message per line or frame.

Invariant: nothing in here knows what a runner does.
"""
