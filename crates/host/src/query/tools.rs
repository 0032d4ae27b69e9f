//! Calls of tools as readers see them.
//!
//! Invariant: hints about how a result is shown never get out; what is made of them does.

use super::show;
use crate::host::Host;
use greenroom_store::{StoreError, reads};
use greenroom_tools::ui::Language;
use serde_json::{Value, json};

impl Host {
    /// What came of a call that the host carried out: `tool_agent_output` and, if it is shown, `ui_schema`.
    /// Nothing for a call that the runner carried out itself.
    pub async fn tool_output(
        &self,
        workspace: &str,
        run_id: &str,
        tool_call_id: &str,
        language: Language,
    ) -> Result<Option<Value>, StoreError> {
        let (workspace, run) = (workspace.to_owned(), run_id.to_owned());
        let call = tool_call_id.to_owned();
        let read = self.store().read(move |tx| reads::tools::output(tx, &workspace, &run, &call));
        let output: Option<Value> =
            read.await?.and_then(|output| serde_json::from_str(&output).ok());
        Ok(output.map(|output| {
            let mut metadata = json!({"tool_agent_output": output});
            show(&mut metadata, language);
            metadata
        }))
    }
}
