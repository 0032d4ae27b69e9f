//! Models, tools and their servers.

use super::super::parts::page_of;
use super::Operation;

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::get("/v1/models", "list_models", "host", "Models that agents can be granted")
            .answers("200", page_of("Model")),
        Operation::get("/v1/tools", "list_tools", "host", "Tools that agents can be granted")
            .answers("200", page_of("Tool")),
        Operation::get(
            "/v1/tool-servers",
            "list_tool_servers",
            "host",
            "MCP servers and modules, and their status",
        )
        .answers("200", page_of("ToolServer")),
        Operation::get(
            "/v1/checks",
            "list_checks",
            "host",
            "Check the database, the models and the surfaces now\nFor admins. No model is called and nothing is sent.",
        )
        .answers("200", page_of("Check")),
    ]
}
