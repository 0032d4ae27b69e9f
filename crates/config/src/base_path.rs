//! `server.base_path`: the path prefix that a shared proxy gives the host.
//!
//! Invariant: no path of the host itself begins with it.

/// Longest prefix.
const BYTES_MAX: usize = 255;

/// Empty, or a path such as `/greenroom`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBasePath {
    #[error("it has to begin with `/` and have plain names, e.g. `/greenroom`")]
    Malformed,
    #[error("`/{0}` is a path of the host itself")]
    Taken(String),
}

impl BasePath {
    /// Ignores slashes at the end.
    pub fn parse(text: &str, is_route: fn(&str) -> bool) -> Result<Self, BadBasePath> {
        let path = text.trim_end_matches('/');
        if path.is_empty() && text.len() <= 1 {
            return Ok(Self::default());
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        let is_name = |part: &str| {
            !part.is_empty() && part.chars().all(is_plain) && part.chars().any(|c| c != '.')
        };
        let names = path.strip_prefix('/').filter(|_| path.len() <= BYTES_MAX);
        let names = names.filter(|names| names.split('/').all(is_name));
        let first =
            names.and_then(|names| names.split('/').next()).ok_or(BadBasePath::Malformed)?;
        match is_route(first) {
            true => Err(BadBasePath::Taken(first.to_owned())),
            false => Ok(Self(path.to_owned())),
        }
    }

    /// As written in front of a path that begins with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_plain_path_that_is_not_one_of_the_host() {
        let parse = |text: &str| BasePath::parse(text, |name| name == "v1");
        for none in ["", "/"] {
            assert_eq!(parse(none), Ok(BasePath::default()));
        }
        for text in
            ["greenroom", "//", "/a//b", "/a b", "/a/../b", "/.", "/a?b", "/a%20", "/é", "/a\"b"]
        {
            assert_eq!(parse(text), Err(BadBasePath::Malformed), "{text}");
        }
        assert_eq!(parse("/v1/x"), Err(BadBasePath::Taken("v1".to_owned())));
    }
}
