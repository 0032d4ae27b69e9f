//! Reports a failed model call: to the runner, to the log, and in the run's diagnostics.
//!
//! Invariant: the runner learns which model failed and why; the provider's host is only in the log and in the
//! run's diagnostics, without path, query or key.

use super::super::call::Call;
use crate::ids::now_ms;
use greenroom_models::{Model, ModelError};
use greenroom_protocol::AgentAPIError;
use greenroom_store::types::Diagnostic;

/// The error of a call, with the name of its model.
pub(super) async fn report(call: &Call<'_>, model: &Model, error: &ModelError) -> AgentAPIError {
    let name = &model.settings().name;
    let mut answer = error.to_api();
    answer.message = format!("model `{name}`: {error}");
    if error.is_provider_error() {
        let place = model.address();
        let place = place.as_deref().unwrap_or("this host");
        tracing::warn!(run.id = call.rights.identity.run_id, model = name, place, %error,
            "a model did not answer");
        note(call, format!("`{name}` at {place}: {error}")).await;
    }
    answer
}

/// Adds it to the run's diagnostics, unless those have many failures already.
async fn note(call: &Call<'_>, message: String) {
    if !call.live.notes_model_failure() {
        return;
    }
    let message = call.shared.redactor.text(&message).into_owned();
    let diagnostic = Diagnostic { kind: "model_failed".to_owned(), message, created_at: now_ms() };
    call.shared.record(&call.rights.identity.run_id, vec![diagnostic]).await;
}
