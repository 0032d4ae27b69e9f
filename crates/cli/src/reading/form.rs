//! The form of a question, as lines for a terminal.

use super::words;
use crate::output::plain;
use greenroom_protocol::Payload;
use greenroom_protocol::interaction::{INTERACTION, InteractionField, InteractionRequest};
use greenroom_tools::ui::Language;

/// The fields and buttons, and the command that answers.
pub fn form_lines(request: &InteractionRequest, run_id: &str, language: Language) -> Vec<String> {
    let fields = request.fields.iter().map(|field| field_line(field, language));
    let actions = request
        .actions
        .iter()
        .map(|action| format!("  [{}] --action {}", plain(&action.label), plain(&action.id)));
    let title = format!("? {}", plain(&request.title));
    let hint = words::answer(language, run_id);
    std::iter::once(title).chain(fields).chain(actions).chain([hint]).collect()
}

fn field_line(field: &InteractionField, language: Language) -> String {
    let options: Vec<String> = field
        .options
        .iter()
        .map(|option| match option.value == option.label {
            true => plain(&option.value),
            false => format!("{} ({})", plain(&option.value), plain(&option.label)),
        })
        .collect();
    let options =
        if options.is_empty() { String::new() } else { format!(": {}", options.join(" | ")) };
    let required = if field.required { words::required(language) } else { "" };
    format!("  {} --set {}=…{options}{required}", plain(&field.label), plain(&field.id))
}

/// The question of a message, if it has one.
pub(super) fn question_of(payload: &Payload) -> Option<InteractionRequest> {
    let Payload::MessageCompleted(completed) = payload else { return None };
    let request = completed.message.metadata.as_ref()?.get(INTERACTION)?;
    InteractionRequest::parse(request).ok()
}
