//! What redaction costs: `cargo run --release -p greenroom-host --example redaction`.

use greenroom_host::Redactor;
use std::hint::black_box;
use std::io::Write;
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_millis(300);

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for count in [1, 10, 100] {
        let secrets: Vec<String> = (0..count).map(secret).collect();
        let redactor = Redactor::new();
        let start = Instant::now();
        redactor.set_secrets(&secrets);
        writeln!(out, "{count} secrets, known after {:?}", start.elapsed())?;
        let mut stream = redactor.stream();
        for delta in ["the words ", " and words", "x", "一个词。"] {
            let cost = measure(|| drop(black_box(stream.push(black_box(delta)))));
            writeln!(out, "  delta {delta:>14?}  {cost:>10.1} ns")?;
        }
        let held = format!("text {}", &secrets[0][..4]);
        let cost = measure(|| drop(black_box((stream.push(black_box(&held)), stream.flush()))));
        writeln!(out, "  delta {held:>14?}  {cost:>10.1} ns, held back and given out")?;
        let prose =
            "Nothing in this sentence is secret; it only goes on, as answers do. ".repeat(1000);
        let cost = measure(|| drop(black_box(redactor.text(black_box(&prose)))));
        let speed = prose.len() as f64 / cost;
        writeln!(out, "  clean text            {speed:>10.2} GB/s")?;
        let json = serde_json::json!({"message": {"role": "assistant", "content": &prose[..600]}});
        let json = serde_json::value::to_raw_value(&json)?;
        let cost = measure(|| drop(black_box(redactor.json(black_box(&json)))));
        writeln!(out, "  clean message, 650 B  {cost:>10.1} ns")?;
    }
    Ok(())
}

/// Looks random, and is the same every time.
fn secret(number: u64) -> String {
    let mut seed = number + 1;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(
            b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
                [(seed >> 33) as usize % 57],
        )
    };
    (0..40).map(|_| next()).collect()
}

/// Nanoseconds of one call.
fn measure(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < ROUND {
        for _ in 0..100 {
            call();
        }
        calls += 100;
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}
