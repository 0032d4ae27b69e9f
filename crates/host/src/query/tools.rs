//! Tool calls as readers see them.
//!
//! Invariant: display hints of a result are not shown; the card made from them is.

use super::show;
use crate::host::Host;
use greenroom_protocol::Object;
use greenroom_protocol::result::kind;
use greenroom_store::types::ResultRecord;
use greenroom_store::{StoreError, reads};
use greenroom_tools::ui::Language;
use serde_json::value::to_raw_value;
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

    /// Adds the cards of completed calls to their results, as `ui_schema`.
    pub(crate) async fn add_cards(
        &self,
        workspace: &str,
        run_id: &str,
        records: &mut [ResultRecord],
        language: Language,
    ) -> Result<(), StoreError> {
        for record in records.iter_mut().filter(|it| it.kind == kind::TOOL_CALL_COMPLETED) {
            let Ok(mut data) = serde_json::from_str::<Object>(record.data.get()) else { continue };
            let Some(call) = data.get("tool_call_id").and_then(Value::as_str) else { continue };
            let output = self.tool_output(workspace, run_id, call, language).await?;
            let card = output.and_then(|mut output| output.get_mut("ui_schema").map(Value::take));
            let Some(card) = card.filter(Value::is_object) else { continue };
            data.insert("ui_schema".to_owned(), card);
            if let Ok(data) = to_raw_value(&data) {
                record.data = data;
            }
        }
        Ok(())
    }
}
