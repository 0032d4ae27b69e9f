//! The help texts and what a mistyped command says.

use crate::told;
use insta::assert_snapshot;

fn help(args: &[&str]) -> String {
    told(std::path::Path::new("."), args)
}

#[test]
fn the_help_of_the_program() {
    assert_snapshot!(help(&["--help"]), @r#"
    exit 0
    --- stdout
    An agent host: events in, a runner's answer out, every fact kept

    Usage: greenroom <COMMAND>

    Commands:
      serve        Start the host; no configuration needed
      open         Print a one-time URL that signs you in to the web interface
      init         Write a commented greenroom.toml
      check        Validate the configuration, list its agents and warn about missing parts
      send         Send a message or another event to an agent
      runs         List, show, follow, cancel, replay and answer runs
      approvals    List, show, allow and deny pending approvals
      deliveries   List, retry and discard deliveries to surfaces
      artifacts    Upload, download and show artifacts
      history      Show or search the transcript of a conversation
      events       List and show events
      audit        List the calls of runners, newest first
      runner       List, create, add and test runners
      harness      List and add external harnesses: Claude Code, Codex, Gemini CLI, goose, Kimi Code,
                   OpenCode
      workspace    List, show, compare and remove the workspaces of external harnesses
      tool         Call or list methods of the project CLI
      sign-in      Sign in at an MCP server that wants OAuth
      sign-out     Forget the sign-in at an MCP server
      dev          Tools for runner developers and tests
      backup       Create, restore and list backups
      move         Move the data of a stopped host to another database, SQLite or PostgreSQL
      bench        Measure latency, throughput and memory on this machine, beside their baselines
      doctor       Check this machine, the host, its database, models, surfaces and runners
      completions  Print completions for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Exit codes:
      0  done
      1  failed
      2  invalid arguments or configuration
      3  not found, or no host answers
      4  the run that was followed failed, was cancelled or timed out

    Environment:
      GREENROOM_URL     address of the host, e.g. http://127.0.0.1:8700
      GREENROOM_TOKEN   token for that host
      GREENROOM_CONFIG  configuration file of `serve`, `check`, `doctor`, `tool`, `backup` and `move`
      GREENROOM_DATA    data folder
      GREENROOM_LOG     what is logged, e.g. `info` or `greenroom_host=debug`
      GREENROOM_MODEL   model to use if none is configured, as `provider/model`
      NO_COLOR          when set, output has no colours

    Examples:
      greenroom serve
      greenroom send "hello" --follow
      greenroom runs list --status failed
    --- stderr
    "#);
}

#[test]
fn the_help_of_serve() {
    assert_snapshot!(help(&["serve", "--help"]), @r#"
    exit 0
    --- stdout
    Start the host; no configuration needed

    Usage: greenroom serve [OPTIONS]

    Options:
          --config <FILE>     Configuration file [default: `GREENROOM_CONFIG`, else ./greenroom.toml if
                              it exists]
          --data <DIR>        Data folder [default: ./greenroom-data]
          --listen <ADDR>     Address to listen on; port 0 picks a free one [default: 127.0.0.1:8700]
          --migrate <yes|no>  What to do with a database of an older version; SQLite files are backed up
                              first [default: yes]
          --accept-loss       Start although the database is damaged or incomplete; what was found is
                              recorded as an event
      -h, --help              Print help

    Examples:
      greenroom serve
      greenroom serve --config greenroom.toml --data /var/lib/greenroom
      greenroom serve --listen 127.0.0.1:0
    --- stderr
    "#);
}

#[test]
fn the_help_of_send() {
    assert_snapshot!(help(&["send", "--help"]), @r#"
    exit 0
    --- stdout
    Send a message or another event to an agent

    Usage: greenroom send [OPTIONS] [TEXT]

    Arguments:
      [TEXT]  The message; `-` reads it from standard input. Optional for events of another type

    Options:
          --type <TYPE>        Type of the event [default: message.received]
          --data <JSON|DIR>    `data` of the event, a JSON object: `{…}`, `@FILE`, or `-` for standard
                               input. Any other value is the data folder of the host, as for other
                               commands [default: ./greenroom-data, or `GREENROOM_URL` with
                               `GREENROOM_TOKEN`]
          --agent <NAME>       Agent for the event [default: decided by the bindings]
          --conversation <ID>  Conversation of the event [default: cli]
          --thread <ID>        Thread of the conversation
          --source <NAME>      Source of the event; event ids are unique per source [default: api]
          --subject <JSON>     Subject of the event, a JSON object with `subject_type`, `subject_id` and
                               `data`
          --actor <ID>         Id of the sender [default: cli]
          --attach <FILE>      File to attach, stored as an artifact; may be given several times
          --event-id <ID>      Id of the event; sending the same id again returns the first answer
      -f, --follow             Print the answer while it is produced
          --json               Print JSON: the response of the host, then every result on a line
      -h, --help               Print help

    Without `--follow`, prints the id of the run; with it, the answer while it is produced.
    Standard output has the answer only, standard error everything else.

    Examples:
      greenroom send "hello" --follow
      greenroom send "what is new?" --agent triage --conversation c1
      greenroom send "what is in it?" --attach photo.png --attach notes.pdf --follow
      git diff | greenroom send - --follow
      greenroom send --type issue.opened --agent echo --data '{"severity":"high"}'
      greenroom send "disk full" --type alert.raised --data @alert.json --source monitor
      jq .issue hook.json | greenroom send --type issue.opened --data -
    --- stderr
    "#);
}

#[test]
fn the_help_of_approvals() {
    assert_snapshot!(help(&["approvals", "--help"]), @r#"
    exit 0
    --- stdout
    List, show, allow and deny pending approvals

    Usage: greenroom approvals [OPTIONS]
           greenroom approvals <COMMAND>

    Commands:
      list   List pending approvals, newest first
      show   Show one approval: action, target, payload and outcome
      allow  Allow an action: it is carried out once
      deny   Deny an action
      help   Print this message or the help of the given subcommand(s)

    Options:
          --status <STATUS>  Only approvals with this status [default: pending] [possible values:
                             pending, allowed, denied, expired, cancelled, all]
          --run <ID>         Only approvals of this run
          --limit <N>        Most items to show [default: 20]
          --cursor <CURSOR>  Continue where an earlier list ended
          --json             Print JSON
          --data <DIR>       Data folder of the host [default: ./greenroom-data, or `GREENROOM_URL` with
                             `GREENROOM_TOKEN`]
      -h, --help             Print help

    Without a subcommand, lists pending approvals.

    Examples:
      greenroom approvals
      greenroom approvals show apr_0197…
      greenroom approvals allow apr_0197…
    --- stderr
    "#);
    assert_snapshot!(help(&["approvals", "allow", "--help"]), @r#"
    exit 0
    --- stdout
    Allow an action: it is carried out once

    Usage: greenroom approvals allow [OPTIONS] <APPROVAL>

    Arguments:
      <APPROVAL>  Id of the approval

    Options:
          --nonce <NONCE>  Nonce of the approval that was reviewed [default: its current nonce]
          --values <JSON>  With `allow`: what a tool's server asks for, as JSON; what is left out gets
                           its default
          --args <JSON>    With `allow`: other arguments for the tool call than it asked for, in full,
                           as JSON
          --json           Print JSON
          --data <DIR>     Data folder of the host [default: ./greenroom-data, or `GREENROOM_URL` with
                           `GREENROOM_TOKEN`]
      -h, --help           Print help

    Examples:
      greenroom approvals allow apr_0197…
      greenroom approvals allow apr_0197… --nonce 5f0c… --json
    --- stderr
    "#);
}

#[test]
fn the_help_of_deliveries_and_of_retry() {
    assert_snapshot!(help(&["deliveries", "--help"]), @r#"
    exit 0
    --- stdout
    List, retry and discard deliveries to surfaces

    Usage: greenroom deliveries <COMMAND>

    Commands:
      list     List deliveries to surfaces, newest first
      retry    Retry deliveries that failed or have an unknown outcome
      discard  Discard deliveries without sending them
      help     Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    --- stderr
    "#);
    assert_snapshot!(help(&["deliveries", "retry", "--help"]), @r#"
    exit 0
    --- stdout
    Retry deliveries that failed or have an unknown outcome

    Usage: greenroom deliveries retry [OPTIONS] <ID|--failed|--unknown>

    Arguments:
      [ID]...  Ids of the deliveries

    Options:
          --failed          All failed deliveries
          --unknown         All deliveries with an unknown outcome
          --surface <NAME>  With `--failed` or `--unknown`: only deliveries to this surface
          --run <ID>        With `--failed` or `--unknown`: only deliveries of this run
          --json            Print JSON
          --data <DIR>      Data folder of the host [default: ./greenroom-data, or `GREENROOM_URL` with
                            `GREENROOM_TOKEN`]
      -h, --help            Print help

    A delivery keeps its id and its position in the order of its target; its retry time starts again.
    One with an unknown outcome may arrive twice.

    Examples:
      greenroom deliveries retry dlv_0197…
      greenroom deliveries retry --failed --surface helpdesk
      greenroom deliveries retry --failed --unknown --run run_0197… --json
    --- stderr
    "#);
}

#[test]
fn the_help_of_runs_and_of_one_of_its_commands() {
    assert_snapshot!(help(&["runs", "--help"]), @r#"
    exit 0
    --- stdout
    List, show, follow, cancel, replay and answer runs

    Usage: greenroom runs <COMMAND>

    Commands:
      list    List runs, newest first
      show    Show the timeline of a run: accepted, started, answered, ended
      follow  Print the answer of a run from the beginning, while it is produced
      cancel  Cancel a run that is queued or running
      replay  Send the event of a run again, to the same agent, without delivering the answer
      answer  Answer a question of a run, or show it
      help    Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    --- stderr
    "#);
    assert_snapshot!(help(&["runs", "list", "--help"]), @r#"
    exit 0
    --- stdout
    List runs, newest first

    Usage: greenroom runs list [OPTIONS]

    Options:
          --conversation <ID>  Only runs of this conversation
          --agent <NAME>       Only runs of this agent
          --status <STATUS>    Only runs with this status [possible values: queued, running, completed,
                               failed, cancelled, timeout]
          --limit <N>          Most items to show [default: 20]
          --cursor <CURSOR>    Continue where an earlier list ended
          --json               Print JSON
          --data <DIR>         Data folder of the host [default: ./greenroom-data, or `GREENROOM_URL`
                               with `GREENROOM_TOKEN`]
      -h, --help               Print help

    Examples:
      greenroom runs list
      greenroom runs list --status failed --limit 100 --json
    --- stderr
    "#);
}

#[test]
fn the_help_of_runner_test() {
    assert_snapshot!(help(&["runner", "test", "--help"]), @r#"
    exit 0
    --- stdout
    Check a runner process against the contract

    Usage: greenroom runner test [OPTIONS] <CMD>...

    Arguments:
      <CMD>...  The command that starts the runner

    Options:
          --runner <NAME>  Runner to check, by its name in the plugin [default: the first]
          --text <TEXT>    Message of the test runs [default: hello]
          --config <JSON>  `ctx.config` of the test runs, as a JSON object
          --timeout <S>    Seconds a single step may take [default: 10]
          --json           Print JSON
      -h, --help           Print help

    Starts the command and calls it as the host does: handshake, manifests, one run, two concurrent
    runs, cancel, unknown methods, invalid lines, shutdown, end of input.
    Calls of the runner to the host are refused; a run that fails because of it fails the test.

    Examples:
      greenroom runner test python3 runner.py
      greenroom runner test --text "hi" --config '{"tone":"dry"}' -- target/release/my-runner --verbose
    --- stderr
    "#);
}

#[test]
fn a_mistyped_command_comes_with_a_suggestion() {
    assert_snapshot!(help(&["sned", "hello"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'sned'

      tip: a similar subcommand exists: 'send'

    Usage: greenroom <COMMAND>

    For more information, try '--help'.
    "#);
}

#[test]
fn a_mistyped_option_comes_with_a_suggestion() {
    assert_snapshot!(help(&["send", "hello", "--folow"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: unexpected argument '--folow' found

      tip: a similar argument exists: '--follow'

    Usage: greenroom send --follow <TEXT>

    For more information, try '--help'.
    "#);
}
