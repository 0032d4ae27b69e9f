//! What a model gets to see and hear: pictures, recordings and files that it can read, the others by name.
//!
//! Invariant: nothing that a provider would refuse reaches it, and nothing disappears without a word: what
//! cannot be shown is named where it stood.

use greenroom_sdk::protocol::content::MediaElement;
use greenroom_sdk::protocol::{ContentElement, MessageContent, ModelResource};
use greenroom_sdk::{ErrorCode, ModelMessage, RunCtx};
use std::collections::HashMap;

/// Bytes of all artifacts in one request; the host takes somewhat more.
const BYTES_MAX: u64 = 24 * 1024 * 1024;
/// Artifacts in one request.
const COUNT_MAX: usize = 20;

/// The artifacts of a conversation that are not to be shown, and why.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    hidden: HashMap<String, &'static str>,
}

impl Shelf {
    /// Looks after every artifact that the messages name, the newest first.
    pub(crate) async fn of<'m>(
        ctx: &RunCtx,
        newest_first: impl Iterator<Item = &'m ModelMessage>,
    ) -> Self {
        let mut shelf = Self::default();
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
                shelf.hidden.insert(id.to_owned(), reason);
            }
        }
        shelf
    }

    /// The message as the model can take it.
    pub(crate) fn shown(&self, message: &ModelMessage, model: &ModelResource) -> ModelMessage {
        let Some(MessageContent::Parts(parts)) = &message.content else { return message.clone() };
        let provider = model.provider.as_deref().unwrap_or_default();
        let shown = parts.iter().map(|part| match self.why_not(part, provider) {
            Some(reason) => ContentElement::Text { text: named(part, reason) },
            None => part.clone(),
        });
        let content = Some(MessageContent::Parts(shown.collect()));
        ModelMessage { content, ..message.clone() }
    }

    fn why_not(&self, part: &ContentElement, provider: &str) -> Option<&'static str> {
        let media = part.media()?;
        let hidden = media.artifact_id.as_ref().and_then(|id| self.hidden.get(id)).copied();
        hidden.or_else(|| (!reads(provider, part)).then_some("this model cannot read it"))
    }
}

/// The parts of a message, none for plain text.
pub(crate) fn parts(message: &ModelMessage) -> &[ContentElement] {
    match &message.content {
        Some(MessageContent::Parts(parts)) => parts,
        _ => &[],
    }
}

async fn why_hidden(ctx: &RunCtx, id: &str, bytes: &mut u64, count: usize) -> Option<&'static str> {
    let apis = &ctx.context.available_apis;
    if !apis.artifact_read {
        return Some("artifacts may not be read here");
    }
    if count > COUNT_MAX {
        return Some("left out, there are newer ones");
    }
    if !apis.artifact_metadata {
        return None;
    }
    match ctx.artifacts().metadata(id).await {
        Ok(view) if *bytes + view.size_bytes > BYTES_MAX => Some("left out, it is too large"),
        Ok(view) => {
            *bytes += view.size_bytes;
            None
        }
        Err(error) if error.code == ErrorCode::NotFound => Some("it is no longer there"),
        // Whoever asks the model will hear of it.
        Err(_) => None,
    }
}

/// Whether providers of this name are known to take such a part.
fn reads(provider: &str, part: &ContentElement) -> bool {
    let google = provider == "gemini";
    let mime =
        |media: &MediaElement| media.mime_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    let by_address = |media: &MediaElement| {
        let is_address = |url: &String| !url.starts_with("data:");
        media.artifact_id.is_none()
            && media.data_base64.is_none()
            && media.url.as_ref().is_some_and(is_address)
    };
    match part {
        ContentElement::Text { .. } => true,
        ContentElement::Image(media) if by_address(media) => {
            !matches!(provider, "gemini" | "ollama")
        }
        ContentElement::Image(media) => {
            matches!(
                &*mime(media),
                "" | "image/png" | "image/jpeg" | "image/jpg" | "image/gif" | "image/webp"
            )
        }
        ContentElement::Audio(media)
        | ContentElement::Video(media)
        | ContentElement::File(media)
            if by_address(media) =>
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

/// A part that is not shown, so that the model can tell the user or hand it to a tool.
fn named(part: &ContentElement, reason: &str) -> String {
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

    fn shown(shelf: &Shelf, part: &ContentElement, provider: &str) -> ContentElement {
        let content = Some(MessageContent::Parts(vec![part.clone()]));
        let message = ModelMessage { content, ..ModelMessage::text(Role::User, "") };
        parts(&shelf.shown(&message, &model(provider)))[0].clone()
    }

    #[test]
    fn what_a_provider_refuses_is_named_instead() {
        let shelf = Shelf::default();
        let image = part(ContentElement::Image, "image/png");
        for provider in ["openai", "anthropic", "gemini", "ollama", "scripted"] {
            assert_eq!(shown(&shelf, &image, provider), image);
        }
        let sheet = part(ContentElement::File, "text/csv");
        let text =
            "[file, \"it\", text/csv, artifact_id art_1: this model cannot read it]".to_owned();
        for provider in ["openai", "anthropic", "gemini"] {
            assert_eq!(
                shown(&shelf, &sheet, provider),
                ContentElement::Text { text: text.clone() }
            );
        }
        let sound = part(ContentElement::Audio, "audio/mpeg");
        assert_eq!(shown(&shelf, &sound, "openai"), sound);
        assert_ne!(shown(&shelf, &sound, "anthropic"), sound);
    }

    #[test]
    fn a_name_with_line_breaks_stays_on_its_line() {
        let mut odd = part(ContentElement::File, "text/csv\r\nX: y");
        if let ContentElement::File(media) = &mut odd {
            media.name = Some("a\n<event>\u{1b}.csv".to_owned());
        }
        let text = "[file, \"a&lt;event>.csv\", text/csvX: y, artifact_id art_1: this model cannot read it]";
        let expected = ContentElement::Text { text: text.to_owned() };
        assert_eq!(shown(&Shelf::default(), &odd, "openai"), expected);
    }

    #[test]
    fn what_is_gone_is_named_with_the_reason() {
        let shelf =
            Shelf { hidden: HashMap::from([("art_1".to_owned(), "it is no longer there")]) };
        let image = part(ContentElement::Image, "image/png");
        let text =
            "[image, \"it\", image/png, artifact_id art_1: it is no longer there]".to_owned();
        assert_eq!(shown(&shelf, &image, "openai"), ContentElement::Text { text });
    }
}
