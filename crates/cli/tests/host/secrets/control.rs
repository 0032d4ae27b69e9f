//! The control: the same words of the same runner, but for this host they are no secret. Wherever a secret is
//! looked for, they are found.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_secret_is_found_in_every_place() {
    let mut host = start_with(&config("", &format!("'{SECRET}'"))).await;
    std::fs::remove_file(host.folder().join("secret")).unwrap();
    let told = tell_everything(&host).await;
    let form = [SECRET.to_owned()];
    let tells = |what: &str, bytes: &[u8]| {
        let found = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(found, "{what} does not tell what it was told");
    };
    for stream in &told.streams {
        let texts = folded(stream);
        for (id, text) in texts.iter().filter(|(id, _)| *id == "secret-characters-1") {
            tells(id, text.as_bytes());
        }
        assert!(texts.contains_key("secret-characters-1"));
    }
    for target in ["/v1/audit", "/v1/events", "/v1/conversations/c/history", "/v1/runs/run_"] {
        let mut pages = told.pages.iter().filter(|(it, _)| it.starts_with(target));
        let found = pages.any(|(it, page)| {
            std::panic::catch_unwind(|| assert_clean_value(it, page, &form)).is_err()
        });
        assert!(found, "{target} does not tell what it was told");
    }
    tells("the log", host.log().as_bytes());
    host.kill();
    let data = host.data();
    let found = std::panic::catch_unwind(|| assert_clean_files(&data, &form)).is_err();
    assert!(found, "no file tells what it was told");
}
