//! What a user reads for mistakes about models and budgets.

use super::{mistakes, read};
use crate::Price;
use insta::assert_snapshot;

#[test]
fn an_unknown_provider_comes_with_the_nearest_name() {
    let text = r#"[models.small]
provider = "antropic"
model = "claude-sonnet-4-5""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `models.small.provider` cannot be `antropic`
      --> greenroom.toml:2:12
       |
     2 | provider = "antropic"
       |            ^^^^^^^^^^
    hint: did you mean `anthropic`?
    "#);
}

#[test]
fn a_key_in_the_file_is_refused_and_not_shown() {
    let text = r#"[models.small]
provider = "openai"
model = "gpt-5-mini"
api_key = "sk-very-secret""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `models.small.api_key` is a secret and cannot be written in the file
      --> greenroom.toml:4:11
       |
     4 | api_key = …
       |           ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`
    "#);
}

#[test]
fn a_key_that_is_not_set_is_pointed_at() {
    let text = r#"[models.small]
provider = "openai"
model = "gpt-5-mini"
api_key = { env = "MISSING_KEY" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: the environment variable `MISSING_KEY` is not set
      --> greenroom.toml:4:19
       |
     4 | api_key = { env = "MISSING_KEY" }
       |                   ^^^^^^^^^^^^^
    hint: set it before the host starts, or change `models.small.api_key.env`
    "#);
}

#[test]
fn a_price_is_an_amount_and_none_is_forgotten() {
    let text = r#"[models.small]
provider = "openai"
model = "gpt-5-mini"
price = { input = -1, output = "2" }

[models.large]
provider = "openai"
model = "gpt-5"
price = { input = 1.25, outptu = 10 }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `models.small.price.input` must be an amount in dollars
      --> greenroom.toml:4:19
       |
     4 | price = { input = -1, output = "2" }
       |                   ^^
    hint: write a number such as `2.5`

    error: `models.small.price.output` must be an amount in dollars
      --> greenroom.toml:4:32
       |
     4 | price = { input = -1, output = "2" }
       |                                ^^^
    hint: write a number such as `2.5`

    error: `models.large.price` has no `output`
      --> greenroom.toml:9:9
       |
     9 | price = { input = 1.25, outptu = … }
       |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: add `output = …`

    error: unknown key `outptu` in `models.large.price`
      --> greenroom.toml:9:25
       |
     9 | price = { input = 1.25, outptu = … }
       |                         ^^^^^^
    hint: did you mean `output`?
    "#);
}

#[test]
fn vectors_have_a_price_for_what_goes_in() {
    let text = r#"[models.vectors]
provider = "openai"
model = "text-embedding-3-small"
kind = "embedding"
price = { input = 0.02 }"#;
    let config = read(text).unwrap().config;
    let price = Price { input: 0.02, ..Price::default() };
    assert_eq!(config.model("vectors").unwrap().price, Some(price));
}

#[test]
fn a_model_is_named_and_of_a_known_kind() {
    let text = r#"[models.small]
provider = "openai"
kind = "embeddings"
timeout_s = 0
base_url = "ftp://example.com""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `models.small` has no `model`
      --> greenroom.toml:1:1
       |
     1 | [models.small]
       | ^^^^^^^^^^^^^^
    hint: add `model = …`

    error: `models.small.kind` cannot be `embeddings`
      --> greenroom.toml:3:8
       |
     3 | kind = "embeddings"
       |        ^^^^^^^^^^^^
    hint: did you mean `embedding`?

    error: `models.small.timeout_s` must be between 1 and 86400
      --> greenroom.toml:4:13
       |
     4 | timeout_s = 0
       |             ^
    hint: leave it out to have the default

    error: `ftp://example.com` is not a web address
      --> greenroom.toml:5:12
       |
     5 | base_url = "ftp://example.com"
       |            ^^^^^^^^^^^^^^^^^^^
    hint: write e.g. `https://example.com/hook`
    "#);
}

#[test]
fn a_budget_is_an_amount_of_a_run_or_a_day() {
    let text = r#"[budget]
day_usd = -5
run_usd = 1

[agents.a]
runner = "plugin:a/b/c"
budget = { run_usd = "much", month_usd = 1 }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `budget.day_usd` must be an amount in dollars
      --> greenroom.toml:2:11
       |
     2 | day_usd = -5
       |           ^^
    hint: write a number such as `2.5`

    error: unknown key `run_usd` in `budget`
      --> greenroom.toml:3:1
       |
     3 | run_usd = …
       | ^^^^^^^
    hint: known here: `day_usd`

    error: `agents.a.budget.run_usd` must be an amount in dollars
      --> greenroom.toml:7:22
       |
     7 | budget = { run_usd = "much", month_usd = … }
       |                      ^^^^^^
    hint: write a number such as `2.5`

    error: unknown key `month_usd` in `agents.a.budget`
      --> greenroom.toml:7:30
       |
     7 | budget = { run_usd = "much", month_usd = … }
       |                              ^^^^^^^^^
    hint: known here: `day_usd`, `run_usd`
    "#);
}
