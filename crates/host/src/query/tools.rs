//! Tool calls as readers see them.
//!
//! Invariant: display hints of a result are not shown; the card made from them is.

use super::show;
use crate::host::Host;
use greenroom_store::{StoreError, reads};
use greenroom_tools::ui::Language;
use serde_json::{Value, json};

impl Host {
    /// The outcome of a call that the host carried out: `tool_agent_output` and, if it has a card, `ui_schema`.
    /// None for a call that the runner carried out itself.
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
