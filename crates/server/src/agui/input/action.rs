//! A pressed button of a card: `forwardedProps.a2uiAction`, and the catalogue of cards that a client knows.
//!
//! Invariant: a press is an event of its own; it never repeats a message.

use crate::response::Problem;
use greenroom_tools::ui::{BASIC_CATALOGUES, CATALOGUE_ID, OLDER_CATALOGUE_ID};
use serde_json::{Value, json};

/// The type of the event of a pressed button.
pub(super) const EVENT_TYPE: &str = "card.action";

/// The data of the event; none if no button was pressed.
pub(super) fn pressed(forwarded_props: &Value) -> Result<Option<Value>, Problem> {
    let action = match forwarded_props.get("a2uiAction") {
        None | Some(Value::Null) => return Ok(None),
        // As CopilotKit sends it, as A2UI v0.9 has it, and the action alone.
        Some(sent) => ["userAction", "action"].iter().find_map(|key| sent.get(key)).unwrap_or(sent),
    };
    let name = action["name"].as_str().filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(Problem::invalid("`forwardedProps.a2uiAction` names no action"));
    };
    let context = match &action["context"] {
        Value::Null => json!({}),
        context if context.is_object() => context.clone(),
        _ => {
            let message = "`context` of `forwardedProps.a2uiAction` is not an object";
            return Err(Problem::invalid(message));
        }
    };
    let mut data = json!({"action": name, "context": context});
    for (key, sent) in [("surface_id", "surfaceId"), ("component_id", "sourceComponentId")] {
        if let Some(id) = action[sent].as_str() {
            data[key] = id.into();
        }
    }
    Ok(Some(data))
}

/// The id by which a client knows the basic catalogue: the one it declares, else that of its version.
pub(super) fn catalogue(forwarded_props: &Value, is_legacy: bool) -> &'static str {
    let declared = &forwarded_props["a2uiClientCapabilities"];
    let lists = [&declared["v0.9"]["supportedCatalogIds"], &declared["supportedCatalogIds"]];
    let mut known = lists
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|id| BASIC_CATALOGUES.into_iter().find(|known| id.as_str() == Some(known)));
    known.next().unwrap_or(if is_legacy { OLDER_CATALOGUE_ID } else { CATALOGUE_ID })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_is_read_in_every_form() {
        let action = json!({"name": "calendar.delete", "surfaceId": "s1", "sourceComponentId": "b1",
            "context": {"event_id": "rec_1"}, "timestamp": "2026-04-21T10:00:00Z"});
        let expected = json!({"action": "calendar.delete", "context": {"event_id": "rec_1"},
            "surface_id": "s1", "component_id": "b1"});
        for sent in [
            json!({"userAction": action}),
            json!({"version": "v0.9", "action": action}),
            action.clone(),
        ] {
            let props = json!({"a2uiAction": sent});
            assert_eq!(pressed(&props).unwrap(), Some(expected.clone()), "{props}");
        }
        assert_eq!(pressed(&json!({})).unwrap(), None);
        assert_eq!(pressed(&Value::Null).unwrap(), None);
        for wrong in [json!({}), json!({"name": ""}), json!({"name": "a", "context": [1]})] {
            assert!(pressed(&json!({"a2uiAction": {"userAction": wrong}})).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_catalogue_is_the_one_that_the_client_declares() {
        let declares =
            |ids: Value| json!({"a2uiClientCapabilities": {"v0.9": {"supportedCatalogIds": ids}}});
        assert_eq!(catalogue(&declares(json!(["x", CATALOGUE_ID])), true), CATALOGUE_ID);
        assert_eq!(catalogue(&declares(json!([OLDER_CATALOGUE_ID])), false), OLDER_CATALOGUE_ID);
        assert_eq!(catalogue(&declares(json!(["x"])), false), CATALOGUE_ID);
        let older =
            json!({"a2uiClientCapabilities": {"supportedCatalogIds": [OLDER_CATALOGUE_ID]}});
        assert_eq!(catalogue(&older, false), OLDER_CATALOGUE_ID);
        assert_eq!(catalogue(&json!({}), true), OLDER_CATALOGUE_ID);
        assert_eq!(catalogue(&Value::Null, false), CATALOGUE_ID);
    }
}
