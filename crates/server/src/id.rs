//! Ids in paths.
//!
//! Invariant: a parsed id is UTF-8, bounded and free of control characters.

use crate::response::Problem;
use crate::router::App;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) String);

impl Id {
    pub(crate) fn parse(text: String) -> Result<Self, Problem> {
        if text.is_empty() || text.len() > EVENT_ID_BYTES_MAX {
            let message = format!("an id must have 1 to {EVENT_ID_BYTES_MAX} bytes");
            return Err(Problem::invalid(message));
        }
        if text.contains(char::is_control) {
            return Err(Problem::invalid("an id must not contain control characters"));
        }
        Ok(Id(text))
    }
}

impl FromRequestParts<App> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        let Path(text) = path.map_err(|_| Problem::invalid("the path is not UTF-8"))?;
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_is_unchanged_or_rejected(text in any::<String>()) {
            if let Ok(Id(id)) = Id::parse(text.clone()) {
                prop_assert_eq!(&id, &text);
                prop_assert!(!id.is_empty() && !id.contains(char::is_control));
            }
        }

        #[test]
        fn ids_in_any_script_are_valid(text in "[^\\p{Cc}]{1,128}") {
            prop_assert!(Id::parse(text).is_ok());
        }
    }

    #[test]
    fn ids_that_are_too_long_are_rejected() {
        assert!(Id::parse("x".repeat(EVENT_ID_BYTES_MAX)).is_ok());
        assert!(Id::parse("x".repeat(EVENT_ID_BYTES_MAX + 1)).is_err());
    }
}
