//! The echo runner as a program of its own.

fn main() -> std::process::ExitCode {
    greenroom_echo::main()
}
