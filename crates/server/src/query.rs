//! Query parameters: read by name, unknown ones refused, values checked.

use crate::answer::Problem;
use crate::router::App;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use greenroom_host::ids::DEFAULT_WORKSPACE;
use std::collections::BTreeMap;

/// Items of a page when the caller names no number.
const LIMIT_DEFAULT: usize = 50;
/// Longest value of a parameter.
const VALUE_BYTES_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Params {
    values: BTreeMap<String, String>,
    page_size_max: usize,
}

impl Params {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(crate) fn workspace(&self) -> &str {
        self.text("workspace_id").unwrap_or(DEFAULT_WORKSPACE)
    }

    pub(crate) fn cursor(&self) -> Option<&str> {
        self.text("cursor")
    }

    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else {
            return Ok(LIMIT_DEFAULT.min(self.page_size_max));
        };
        match text.parse() {
            Ok(limit @ 1..) if limit <= self.page_size_max => Ok(limit),
            _ => Err(Problem::invalid(format!(
                "`limit` must be a number from 1 to {}",
                self.page_size_max
            ))),
        }
    }

    /// A number from 0 on.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number @ 0..) => Ok(Some(number)),
            _ => Err(Problem::invalid(format!("`{name}` must be a number from 0 on"))),
        }
    }

    /// Refuses parameters that the endpoint does not know.
    pub(crate) fn only(self, known: &[&str]) -> Result<Self, Problem> {
        match self.values.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(Problem::invalid(format!(
                "there is no parameter `{}` here, only {}",
                name.escape_debug().take(64).collect::<String>(),
                known.join(", ")
            ))),
            None => Ok(self),
        }
    }
}

impl FromRequestParts<App> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let query: Result<axum::extract::Query<Vec<(String, String)>>, _> =
            axum::extract::Query::try_from_uri(&parts.uri);
        let pairs = query.map_err(|_| Problem::invalid("the query does not parse"))?.0;
        let mut values = BTreeMap::new();
        for (name, value) in pairs {
            if value.len() > VALUE_BYTES_MAX || value.contains(char::is_control) {
                return Err(Problem::invalid(
                    "a query parameter is too long or has control characters",
                ));
            }
            if values.insert(name, value).is_some() {
                return Err(Problem::invalid("a query parameter is given twice"));
            }
        }
        let page_size_max = app.host.settings().limits.page_size;
        Ok(Params { values, page_size_max })
    }
}
