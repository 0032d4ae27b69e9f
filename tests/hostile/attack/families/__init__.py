"""One module per family; importing them registers their escapes."""

from families import (  # noqa: F401
    forward_proxy, hidden_files, kernel, metadata, network, other_processes, paths, persistence, resources, secrecy,
    special_files, survivors, unix_sockets,
)
