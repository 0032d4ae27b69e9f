//! The message of an event as LangBot's message chain, for handlers of platform events and for listeners.
//!
//! Invariant: files are named here, and their bytes are in the input of the run: a run has them at most twice.

use super::content::ARTIFACT;
use greenroom_protocol::content::MediaElement;
use greenroom_protocol::{AgentInput, ArtifactRef, ContentElement};
use serde_json::{Value, json};

/// The text first, then pictures and files in their order.
pub(super) fn of(input: &AgentInput) -> Vec<Value> {
    let plain = |text: &str| json!({"type": "Plain", "text": text});
    let mut chain: Vec<Value> = input.text.as_deref().map(plain).into_iter().collect();
    let is_shown = |file: &ArtifactRef| {
        let mut shown = input.contents.iter().filter_map(ContentElement::media);
        shown.any(|media| media.artifact_id.as_ref() == Some(&file.artifact_id))
    };
    for element in &input.contents {
        match element {
            ContentElement::Text { text } if input.text.is_none() => chain.push(plain(text)),
            ContentElement::Text { .. } => {}
            ContentElement::Image(media) => chain.push(component("Image", media)),
            ContentElement::Audio(media) => chain.push(component("Voice", media)),
            ContentElement::Video(media) | ContentElement::File(media) => {
                chain.push(component("File", media));
            }
        }
    }
    let attached = input.attachments.iter().filter(|file| !is_shown(file));
    chain.extend(attached.map(attachment));
    chain
}

fn attachment(file: &ArtifactRef) -> Value {
    let kind = match file.mime_type.as_deref().and_then(|mime| mime.split('/').next()) {
        Some("image") => "Image",
        Some("audio") => "Voice",
        _ => "File",
    };
    let media = MediaElement {
        artifact_id: Some(file.artifact_id.clone()),
        name: file.name.clone(),
        ..MediaElement::default()
    };
    let mut component = component(kind, &media);
    if kind == "File" {
        component["size"] = file.size_bytes.unwrap_or_default().into();
    }
    component
}

/// LangBot has empty texts where nothing is known.
fn component(kind: &str, media: &MediaElement) -> Value {
    let address = media.artifact_id.as_ref().map(|id| format!("{ARTIFACT}{id}"));
    let url = address.or_else(|| media.url.clone());
    // Inline bytes are few: the host makes an artifact of larger ones.
    let data = media.data_base64.as_deref().filter(|_| url.is_none());
    let mime_type = media.mime_type.as_deref().unwrap_or("application/octet-stream");
    let base64 = data.map(|data| format!("data:{mime_type};base64,{data}"));
    let id = media.artifact_id.as_deref().unwrap_or_default();
    let mut component =
        json!({"type": kind, "url": url.unwrap_or_default(), "base64": base64.unwrap_or_default()});
    match kind {
        "Image" => component["image_id"] = id.into(),
        "File" => {
            component["id"] = id.into();
            component["name"] = media.name.as_deref().unwrap_or("file").into();
        }
        _ => {}
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_message_are_named_in_its_chain() {
        let input: AgentInput = serde_json::from_value(json!({"text": "see", "contents": [
            {"type": "text", "text": "see"},
            {"type": "image", "data_base64": "AAAA", "mime_type": "image/png"},
            {"type": "image", "artifact_id": "art_1", "data_base64": "AAAA", "mime_type": "image/png"},
            {"type": "audio", "url": "https://example.com/a.mp3"}],
            "attachments": [{"artifact_id": "art_1", "mime_type": "image/png"},
                {"artifact_id": "art_2", "mime_type": "text/plain", "name": "a.txt", "size_bytes": 5}]}))
        .unwrap();
        let expected = json!([
            {"type": "Plain", "text": "see"},
            {"type": "Image", "image_id": "", "url": "", "base64": "data:image/png;base64,AAAA"},
            {"type": "Image", "image_id": "art_1", "url": "artifact:art_1", "base64": ""},
            {"type": "Voice", "url": "https://example.com/a.mp3", "base64": ""},
            {"type": "File", "id": "art_2", "url": "artifact:art_2", "base64": "", "name": "a.txt", "size": 5}]);
        assert_eq!(json!(of(&input)), expected);
    }

    #[test]
    fn a_message_without_a_text_has_the_texts_of_its_parts() {
        let input =
            json!({"contents": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        let chain = of(&serde_json::from_value(input).unwrap());
        assert_eq!(
            json!(chain),
            json!([{"type": "Plain", "text": "a"}, {"type": "Plain", "text": "b"}])
        );
        assert_eq!(of(&AgentInput::default()), Vec::<Value>::new());
    }
}
