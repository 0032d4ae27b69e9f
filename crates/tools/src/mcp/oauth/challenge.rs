//! The `WWW-Authenticate` header of a refusal.
//!
//! Invariant: what cannot be read is left out; a challenge never fails.

/// What a server says about the token that it wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) resource_metadata: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Of one or several headers, joined by commas.
    pub(super) fn parse(header: &str) -> Self {
        let mut challenge = Self::default();
        for (name, value) in parameters(header) {
            match name.as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => challenge.scopes = words(&value),
                "error" => challenge.error = Some(value),
                _ => {}
            }
        }
        challenge
    }

    pub(super) fn needs_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The words of a list of scopes, each once.
pub(super) fn words(scopes: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in scopes.split_ascii_whitespace() {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// `name=value` and `name="value"` pairs; names of schemes are skipped.
fn parameters(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = header;
    while let Some(equals) = rest.find('=') {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '*';
        let name = rest[..equals].trim_end().rsplit(|c: char| !is_name(c)).next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        let (value, after) = value(rest[equals + 1..].trim_start());
        found.push((name, value));
        rest = after;
    }
    found
}

/// A value, quoted or not, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', ';']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => {
                escaped = true;
                continue;
            }
            '"' => return (value, &quoted[at + 1..]),
            _ => {}
        }
        value.push(c);
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_challenge_are_read() {
        let header = r#"Basic realm="a=b, scope=\"no\"", Bearer error="insufficient_scope", scope="a b a", resource_metadata=https://m.example/x"#;
        let challenge = Challenge::parse(header);
        assert_eq!(challenge.scopes, ["a", "b"]);
        assert!(challenge.needs_more_scopes());
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://m.example/x"));
    }

    #[test]
    fn a_malformed_challenge_is_no_error() {
        for header in ["", "Bearer", "=", "\"=\"=\"", "scope=\"open", "é=ü, scope"] {
            let challenge = Challenge::parse(header);
            assert_eq!(challenge.resource_metadata, None, "{header}");
        }
    }
}
