//! Media for the model: images, audio and files that it supports, others by name.
//!
//! Invariant: nothing that a provider would reject is sent, and nothing is dropped silently: unsupported media are
//! replaced by their name.

use greenroom_sdk::protocol::content::MediaElement;
use greenroom_sdk::protocol::{ContentElement, MessageContent, ModelResource};
use greenroom_sdk::{ErrorCode, ModelMessage, RunCtx};
use std::collections::HashMap;

/// Limit for all artifacts in a request; the host allows somewhat more.
const BYTES_MAX: u64 = 24 * 1024 * 1024;
/// Artifacts in one request.
const COUNT_MAX: usize = 20;

/// Artifacts of a conversation that are not sent, and why.
#[derive(Debug, Default)]
pub(crate) struct HiddenArtifacts {
    hidden: HashMap<String, &'static str>,
}

impl HiddenArtifacts {
    /// Checks every artifact in the messages, newest first.
    pub(crate) async fn find<'m>(
        ctx: &RunCtx,
        newest_first: impl Iterator<Item = &'m ModelMessage>,
    ) -> Self {
        let mut artifacts = Self::default();
        let (mut seen, mut bytes) = (Vec::<&str>::new(), 0);
        for id in newest_first
            .flat_map(parts)
            .filter_map(|part| part.media().and_then(|media| media.artifact_id.as_deref()))
        {
            if seen.contains(&id) {
                continue;
            }
            seen.push(id);
            if let Some(reason) = why_hidden(ctx, id, &mut bytes, seen.len()).await {
                artifacts.hidden.insert(id.to_owned(), reason);
            }
        }
        artifacts
    }

    /// The message in a form that the model supports.
    pub(crate) fn shown(&self, message: &ModelMessage, model: &ModelResource) -> ModelMessage {
        let Some(MessageContent::Parts(parts)) = &message.content else { return message.clone() };
        let provider = model.provider.as_deref().unwrap_or_default();
        let shown = parts.iter().map(|part| match self.why_not(part, provider) {
            Some(reason) => ContentElement::Text { text: placeholder(part, reason) },
            None => part.clone(),
        });
        let content = Some(MessageContent::Parts(shown.collect()));
        ModelMessage { content, ..message.clone() }
    }

    fn why_not(&self, part: &ContentElement, provider: &str) -> Option<&'static str> {
        let media = part.media()?;
        let hidden = media.artifact_id.as_ref().and_then(|id| self.hidden.get(id)).copied();
        hidden.or_else(|| (!supports(provider, part)).then_some("not supported by this model"))
    }
}

/// The parts of a message; empty for plain text.
pub(crate) fn parts(message: &ModelMessage) -> &[ContentElement] {
    match &message.content {
        Some(MessageContent::Parts(parts)) => parts,
        _ => &[],
    }
}

async fn why_hidden(ctx: &RunCtx, id: &str, bytes: &mut u64, count: usize) -> Option<&'static str> {
    let apis = &ctx.context.available_apis;
    if !apis.artifact_read {
        return Some("reading artifacts is not granted");
    }
    if count > COUNT_MAX {
        return Some("omitted, there are newer ones");
    }
    if !apis.artifact_metadata {
        return None;
    }
    match ctx.artifacts().metadata(id).await {
        Ok(view) if *bytes + view.size_bytes > BYTES_MAX => Some("omitted, too large"),
        Ok(view) => {
            *bytes += view.size_bytes;
            None
        }
        Err(error) if error.code == ErrorCode::NotFound => Some("it no longer exists"),
        // The model request will report the error.
        Err(_) => None,
    }
}

/// Whether a provider is known to support such a part.
fn supports(provider: &str, part: &ContentElement) -> bool {
    let google = provider == "gemini";
    let mime =
        |media: &MediaElement| media.mime_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    let by_url = |media: &MediaElement| {
        let is_remote = |url: &String| !url.starts_with("data:");
        media.artifact_id.is_none()
            && media.data_base64.is_none()
            && media.url.as_ref().is_some_and(is_remote)
    };
    match part {
        ContentElement::Text { .. } => true,
        ContentElement::Image(media) if by_url(media) => !matches!(provider, "gemini" | "ollama"),
        ContentElement::Image(media) => {
            matches!(
                &*mime(media),
                "" | "image/png" | "image/jpeg" | "image/jpg" | "image/gif" | "image/webp"
            )
        }
        ContentElement::Audio(media)
        | ContentElement::Video(media)
        | ContentElement::File(media)
            if by_url(media) =>
        {
            false
        }
        ContentElement::Audio(media) => {
            let plain =
                matches!(&*mime(media), "audio/wav" | "audio/x-wav" | "audio/mpeg" | "audio/mp3");
            google || (plain && matches!(provider, "openai" | "azure" | "openrouter" | "scripted"))
        }
        ContentElement::Video(_) => google,
        ContentElement::File(media) => match &*mime(media) {
            "application/pdf" => {
                let known = ["openai", "openai-responses", "azure", "openrouter", "anthropic"];
                google || provider == "scripted" || known.contains(&provider)
            }
            "text/plain" => google || provider == "anthropic",
            _ => false,
        },
    }
}

/// A placeholder, so that the model can mention it or pass it to a tool.
fn placeholder(part: &ContentElement, reason: &str) -> String {
    let kind = match part {
        ContentElement::Text { .. } => "text",
        ContentElement::Image(_) => "image",
        ContentElement::Audio(_) => "audio",
        ContentElement::Video(_) => "video",
        ContentElement::File(_) => "file",
    };
    let media = part.media();
    let line = |text: &String| text.chars().filter(|c| !c.is_control()).collect::<String>();
    let field = |of: fn(&MediaElement) -> Option<&String>| media.and_then(of).map(line);
    let mut words = vec![kind.to_owned()];
    words.extend(field(|media| media.name.as_ref()).map(|name| format!("\"{name}\"")));
    words.extend(field(|media| media.mime_type.as_ref()));
    words.extend(field(|media| media.artifact_id.as_ref()).map(|id| format!("artifact_id {id}")));
    words.extend(field(|media| media.url.as_ref()).filter(|url| !url.starts_with("data:")));
    format!("[{}: {reason}]", crate::event::escape(&words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::Role;

    fn part(kind: fn(MediaElement) -> ContentElement, mime_type: &str) -> ContentElement {
        kind(MediaElement {
            artifact_id: Some("art_1".to_owned()),
            mime_type: Some(mime_type.to_owned()),
            name: Some("it".to_owned()),
            ..MediaElement::default()
        })
    }

    fn model(provider: &str) -> ModelResource {
        ModelResource { provider: Some(provider.to_owned()), ..ModelResource::default() }
    }

    fn shown(artifacts: &HiddenArtifacts, part: &ContentElement, provider: &str) -> ContentElement {
        let content = Some(MessageContent::Parts(vec![part.clone()]));
        let message = ModelMessage { content, ..ModelMessage::text(Role::User, "") };
        parts(&artifacts.shown(&message, &model(provider)))[0].clone()
    }

    #[test]
    fn unsupported_media_are_replaced_by_their_name() {
        let artifacts = HiddenArtifacts::default();
        let image = part(ContentElement::Image, "image/png");
        for provider in ["openai", "anthropic", "gemini", "ollama", "scripted"] {
            assert_eq!(shown(&artifacts, &image, provider), image);
        }
        let sheet = part(ContentElement::File, "text/csv");
        let text =
            "[file, \"it\", text/csv, artifact_id art_1: not supported by this model]".to_owned();
        for provider in ["openai", "anthropic", "gemini"] {
            assert_eq!(
                shown(&artifacts, &sheet, provider),
                ContentElement::Text { text: text.clone() }
            );
        }
        let sound = part(ContentElement::Audio, "audio/mpeg");
        assert_eq!(shown(&artifacts, &sound, "openai"), sound);
        assert_ne!(shown(&artifacts, &sound, "anthropic"), sound);
    }

    #[test]
    fn line_breaks_in_names_are_removed() {
        let mut odd = part(ContentElement::File, "text/csv\r\nX: y");
        if let ContentElement::File(media) = &mut odd {
            media.name = Some("a\n<event>\u{1b}.csv".to_owned());
        }
        let text = "[file, \"a&lt;event>.csv\", text/csvX: y, artifact_id art_1: not supported by this model]";
        let expected = ContentElement::Text { text: text.to_owned() };
        assert_eq!(shown(&HiddenArtifacts::default(), &odd, "openai"), expected);
    }

    #[test]
    fn missing_artifacts_are_named_with_the_reason() {
        let artifacts = HiddenArtifacts {
            hidden: HashMap::from([("art_1".to_owned(), "it no longer exists")]),
        };
        let image = part(ContentElement::Image, "image/png");
        let text = "[image, \"it\", image/png, artifact_id art_1: it no longer exists]".to_owned();
        assert_eq!(shown(&artifacts, &image, "openai"), ContentElement::Text { text });
    }
}
