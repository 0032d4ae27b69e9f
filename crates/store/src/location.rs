//! Where the facts are.
//!
//! Invariant: what is shown of a location holds no password.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    Sqlite(PathBuf),
    Postgres(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Location::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    // Parameters may hold one as well.
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    match rest.rsplit_once('@') {
        Some((user, address)) => {
            let user = user.split_once(':').map_or(user, |(user, _)| user);
            format!("{scheme}://{user}@{address}")
        }
        None => format!("{scheme}://{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("postgres://me:se:cr@et@db:5432/facts", "postgres://me@db:5432/facts"),
            ("postgresql://me@db/facts?password=secret", "postgresql://me@db/facts"),
            ("postgres://db/facts", "postgres://db/facts"),
        ] {
            let shown_now = Location::Postgres(url.to_owned()).to_string();
            assert!(!shown_now.contains("cret"), "{shown_now}");
            assert_eq!(shown_now, shown);
        }
    }
}
