//! What a runner says last is cut for whoever reads it: no part of a secret is left at the cut.

use super::{AS_A_SECRET, PATIENCE, SECRET, config, start_with, wait_for};

/// So many characters before the secret that the cut goes through it.
const BEFORE_LAST_WORDS: usize = 385;
const BEFORE_A_QUOTE: usize = 105;

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_known_before_a_text_is_cut() {
    let ends = [
        (
            "words",
            format!("stderr.write('x' * {BEFORE_LAST_WORDS} + secret)"),
            "exited with code 0",
        ),
        (
            "garbage",
            format!("stdout.write('x' * {BEFORE_A_QUOTE} + secret + '\\n')"),
            "wrote a line",
        ),
    ];
    let runner = |(name, write, _): &(&str, String, &str)| {
        let code = format!("import os, sys; secret = os.environ['THE_SECRET']; sys.{write}");
        format!(
            "[runners.{name}]\ncommand = [\"python3\", \"-c\", {code:?}]\ndir = \"leaky\"\n\
             env = {{ THE_SECRET = {AS_A_SECRET}, PYTHONIOENCODING = \"utf-8\" }}\n"
        )
    };
    let more: String = ends.iter().map(runner).collect();
    let mut host = start_with(&(config("", AS_A_SECRET) + &more)).await;
    for (name, _, told) in &ends {
        let failure = wait_for("its end", PATIENCE, async || {
            let runner = host.api().runner(name).await;
            runner["last_failure"]["message"].as_str().map(str::to_owned)
        })
        .await;
        assert!(failure.contains(told) && failure.contains("xxxxxxxx"), "{failure}");
        assert!(failure.contains("[redacted]"), "{failure}");
    }
    let beginning = &SECRET[..6];
    let listed = host.api().get("/v1/runners").await.to_string();
    assert!(!listed.contains(beginning), "{listed}");
    assert!(!host.log().contains(beginning), "{}", host.log());
    host.stop().await;
}
