"""Plugins with one function, and the errors of their runs."""

from __future__ import annotations

from typing import Any

from greenroom_sdk import Plugin, testing


def plugin_of(function: Any, **options: Any) -> Plugin:
    plugin = Plugin("tests", "subject", **options)
    plugin.runner()(function)
    return plugin


def code_of(ran: testing.Ran) -> tuple[str, str | None]:
    assert ran.error is not None, ran.types
    return ran.error.code, ran.error.message
