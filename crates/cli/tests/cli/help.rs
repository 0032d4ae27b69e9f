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
      open         Print an address that signs you in to the web interface, once
      init         Write a commented greenroom.toml
      check        Validate the configuration, say what would bind and warn of what is missing
      send         Send a message, or any other event, to an agent
      runs         List, show, follow, cancel and replay runs
      approvals    List, show, allow and deny actions that wait for approval
      deliveries   List deliveries to surfaces, send them again, discard them
      artifacts    Put bytes into the host, get them back, show what is known of them
      history      Show what was said in a conversation, or look for something in it
      events       Look into the event log
      audit        List the calls of runners, newest first
      runner       List runners, write a new one, add a plugin, check one against the contract
      tool         Call a method of the project CLI, or list what there is
      dev          Tools for those who write runners, and for tests
      backup       Copy everything a host keeps into one file, restore it, list such files
      move         Move a stopped host's facts into another database, from SQLite to PostgreSQL or back
      bench        Measure this machine: latency, throughput, memory, each beside its baseline
      doctor       Check this machine, the host, its database, models, surfaces and runners
      completions  Print completions for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version

    Exit codes:
      0  done
      1  failed
      2  wrong arguments or a wrong configuration
      3  it does not exist, or no host answers
      4  the run that was followed failed, was cancelled or timed out

    Environment:
      GREENROOM_URL     address of the host to talk to, e.g. http://127.0.0.1:8700
      GREENROOM_TOKEN   token to present to that host
      GREENROOM_CONFIG  configuration file of `serve`, `check`, `doctor`, `tool`, `backup` and `move`
      GREENROOM_DATA    data folder
      GREENROOM_LOG     what is logged, e.g. `info` or `greenroom_host=debug`
      GREENROOM_MODEL   model to use where none is configured, as `provider/model`
      NO_COLOR          when set, nothing is coloured

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
          --data <DIR>        Folder for everything the host keeps [default: ./greenroom-data]
          --listen <ADDR>     Address to listen on; port 0 picks a free one [default: 127.0.0.1:8700]
          --migrate <yes|no>  What to do about a database of an older version; SQLite files are copied
                              aside first [default: yes]
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
    Send a message, or any other event, to an agent

    Usage: greenroom send [OPTIONS] [TEXT]

    Arguments:
      [TEXT]  The message; `-` reads it from standard input. An event of another type needs none

    Options:
          --type <TYPE>        Type of the event [default: message.received]
          --data <JSON|DIR>    `data` of the event, a JSON object: `{…}`, `@FILE`, or `-` for standard
                               input. Any other value is the data folder of the host, as for other
                               commands [default: ./greenroom-data, or `GREENROOM_URL` with
                               `GREENROOM_TOKEN`]
          --agent <NAME>       Agent that shall take it; without it the bindings decide
          --conversation <ID>  Conversation it belongs to [default: cli]
          --thread <ID>        Thread of the conversation
          --source <NAME>      Where the event comes from; event ids are unique per source [default:
                               api]
          --subject <JSON>     What the event is about, a JSON object with `subject_type`, `subject_id`
                               and `data`
          --actor <ID>         Id of the sender [default: cli]
          --attach <FILE>      File that goes with the message, kept as an artifact; may be given
                               several times
          --event-id <ID>      Id of the event; sending the same one again gives the first answer
      -f, --follow             Print the answer as it comes
          --json               Print JSON: what the host answered, then every result on a line
      -h, --help               Print help

    Without `--follow` the run's id is printed; with it the answer, as it comes.
    The answer alone is on standard output, everything else on standard error.

    Examples:
      greenroom send "hello" --follow
      greenroom send "what is new?" --agent triage --conversation c1
      greenroom send "what is in it?" --attach photo.png --attach notes.pdf --follow
      git diff | greenroom send - --follow
      greenroom send --type issue.opened --data '{"severity":"high"}'
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
    List, show, allow and deny actions that wait for approval

    Usage: greenroom approvals [OPTIONS]
           greenroom approvals <COMMAND>

    Commands:
      list   List actions that wait for approval, newest first
      show   Show one approval: the action with its target and payload, and what came of it
      allow  Allow an action: it is carried out from then on, once
      deny   Deny an action
      help   Print this message or the help of the given subcommand(s)

    Options:
          --status <STATUS>  Only those with this status [default: pending] [possible values: pending,
                             allowed, denied, expired, cancelled, all]
          --run <ID>         Only those of this run
          --limit <N>        Most items to show [default: 20]
          --cursor <CURSOR>  Continue where an earlier list ended
          --json             Print JSON
          --data <DIR>       Data folder of the host to talk to [default: ./greenroom-data, or
                             `GREENROOM_URL` with `GREENROOM_TOKEN`]
      -h, --help             Print help

    Without a command it lists those that wait.

    Examples:
      greenroom approvals
      greenroom approvals show apr_0197…
      greenroom approvals allow apr_0197…
    --- stderr
    "#);
    assert_snapshot!(help(&["approvals", "allow", "--help"]), @r#"
    exit 0
    --- stdout
    Allow an action: it is carried out from then on, once

    Usage: greenroom approvals allow [OPTIONS] <APPROVAL>

    Arguments:
      <APPROVAL>  Id of the approval

    Options:
          --nonce <NONCE>  Nonce of the approval that was looked at [default: the one it has now]
          --json           Print JSON
          --data <DIR>     Data folder of the host to talk to [default: ./greenroom-data, or
                           `GREENROOM_URL` with `GREENROOM_TOKEN`]
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
    List deliveries to surfaces, send them again, discard them

    Usage: greenroom deliveries <COMMAND>

    Commands:
      list     List deliveries to surfaces, newest first
      retry    Send deliveries again that failed or have an unknown outcome
      discard  Discard deliveries, so that they are not sent
      help     Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    --- stderr
    "#);
    assert_snapshot!(help(&["deliveries", "retry", "--help"]), @r#"
    exit 0
    --- stdout
    Send deliveries again that failed or have an unknown outcome

    Usage: greenroom deliveries retry [OPTIONS] <ID|--failed|--unknown>

    Arguments:
      [ID]...  Ids of the deliveries

    Options:
          --failed          All that were refused or given up
          --unknown         All with an unknown outcome
          --surface <NAME>  With `--failed` or `--unknown`: only those to this surface
          --run <ID>        With `--failed` or `--unknown`: only those of this run
          --json            Print JSON
          --data <DIR>      Data folder of the host to talk to [default: ./greenroom-data, or
                            `GREENROOM_URL` with `GREENROOM_TOKEN`]
      -h, --help            Print help

    A delivery keeps its id and its place in the order of its target, and gets fresh time for retries.
    One with an unknown outcome may arrive a second time.

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
    List, show, follow, cancel and replay runs

    Usage: greenroom runs <COMMAND>

    Commands:
      list    List runs, newest first
      show    Show what happened in a run: when it was accepted, started, answered and ended
      follow  Print the answer of a run as it comes, from its beginning
      cancel  Cancel a run that is queued or running
      replay  Send the event of a run again, to the same agent, without delivering the answer
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
          --data <DIR>         Data folder of the host to talk to [default: ./greenroom-data, or
                               `GREENROOM_URL` with `GREENROOM_TOKEN`]
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
          --text <TEXT>    What the test runs are told [default: hello]
          --config <JSON>  `ctx.config` of the test runs, as a JSON object
          --timeout <S>    Seconds a single step may take [default: 10]
          --json           Print JSON
      -h, --help           Print help

    Starts the command and speaks to it as the host does: introduction, manifests, a run, two runs at
    once, cancel, unknown methods, broken lines, shutdown, the end of its input.
    Whatever the runner asks the host for is refused; a run that fails because of it fails the test.

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
