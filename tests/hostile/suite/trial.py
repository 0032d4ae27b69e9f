"""One pass: a host as one user, every kind of process, every escape; decides what each reached."""

import glob
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from registry import ESCAPES

from . import canaries, listeners, processes, stage
from .targets import describe

BATCH = 100
HOLD_S = 0.6


@dataclass(frozen=True)
class Row:
    user: str
    kind: str
    name: str
    outcome: str  # "reached", "refused", "absent"
    evidence: str
    # The parts of the sandbox that are in force.
    parts: tuple = ()


@dataclass(frozen=True)
class Attack:
    """One kind of process, what it tried, what it reports, and what was seen from outside."""

    kind: object
    wanted: list
    targets: dict
    reports: dict
    effects: dict


class Trial:
    def __init__(self, place, kinds, escapes, keys, user, environment):
        self.place, self.kinds, self.escapes, self.user = place, kinds, escapes, user
        self.listeners = listeners.Listeners(place)
        place.listed_port = self.listeners.listed_port
        self.stage = stage.Stage(place, kinds, keys, environment)
        self.keys, self.rows, self.bystanders, self.last_targets = keys, [], [], {}

    def run(self):
        self.stage.prepare()
        self.shared = canaries.SharedObjects(self.place)
        self.stage.start()
        self.victim_pid = self.stage.wait_ready("victim")
        parts = tuple(self.stage.runner("victim").get("isolation", "").split("+"))
        if "namespaces" in self.stage.environment.get("GREENROOM_WITHOUT", "") and "view" in parts:
            raise stage.HostError("this binary cannot do without namespaces: build it with the feature `faults`")
        self.shared.look()
        attacked = [self.attack(kind) for kind in self.kinds if self.wanted(kind)]
        # These take seconds each and are measured per kind, so the kinds take turns no longer.
        with ThreadPoolExecutor(len(self.kinds)) as pool:
            list(pool.map(self.exhaust, attacked))
        for attack in attacked:
            self.decide(attack)
        self.outlive()
        return [replace(row, parts=parts) for row in self.rows]

    def wanted(self, kind):
        return [escape for escape in self.escapes.values()
                if (kind.families is None or escape.family in kind.families)
                and (escape.kinds is None or kind.name in escape.kinds)]

    def attack(self, kind):
        """Everything that does not end the process, in a few requests."""
        wanted = self.wanted(kind)
        files = canaries.Canaries(self.place, kind, [escape.name for escape in wanted])
        bystander = processes.Bystander(self.place, kind)
        self.bystanders.append(bystander)
        if kind.asked_as != "method" and kind.table == "runners":
            self.stage.wait_ready(kind.name)
        self.shared.changed()
        signals = self.stage.log().count("victim: signalled")
        targets = describe(self, kind, files, bystander)
        caller = listeners.Caller(targets["listen_port"], self.listeners.heard)
        reader = listeners.Reader(self.watched())
        later = "survivors" if kind.asked_as != "method" else None
        reports = self.together(kind, [escape for escape in wanted if not escape.alone and escape.family != later], targets)
        caller.stop()
        reader.stop()
        effects = files.changed()
        effects.update(self.survivors(kind) if kind.asked_as == "method" else {})
        effects.update(self.effects(kind, bystander, signals, reports, files))
        self.last_targets[kind.name] = targets
        return Attack(kind, wanted, targets, reports, effects)

    def exhaust(self, attack):
        """What may end the process, one request each."""
        for escape in attack.wanted:
            if escape.alone:
                attack.reports[escape.name], held = self.alone(attack.kind, escape, attack.targets)
                attack.effects.update(held)

    def watched(self):
        place = self.place
        return (place.data / "greenroom.db", place.work / "victim/victim.py", place.home / ".bashrc",
                place.work / "greenroom.toml", place.binary, "/etc/passwd")

    def together(self, kind, escapes, targets):
        reports = {}
        for start in range(0, len(escapes), BATCH):
            names = [escape.name for escape in escapes[start:start + BATCH]]
            answer = self.stage.ask(kind, names, targets)
            if "reports" in answer:
                reports.update(answer["reports"])
                continue
            self.must_answer(kind, answer["error"])
            # Something ended the process: one by one.
            for name in names:
                answer = self.stage.ask(kind, [name], targets)
                reports[name] = answer["reports"][name] if "reports" in answer else {
                    "outcome": "refused", "evidence": f"ended: {answer['error']}"}
        return reports

    def must_answer(self, kind, error):
        """A program that does not run cannot try anything, and its refusals would prove nothing."""
        if "reports" not in self.stage.ask(kind, [], {}):
            raise stage.HostError(f"the program of kind `{kind.name}` does not run: {error}\n{self.stage.log()[-2000:]}")

    def alone(self, kind, escape, targets):
        if escape.name.startswith("resources.memory") and memory_available_mb() < 2 * kind.memory_mb + 1024:
            return {"outcome": "absent", "evidence": "this machine has too little memory to try"}, {}
        meter = processes.MemoryMeter(self.stage.tag(kind))
        meter.start()
        answer = self.stage.ask(kind, [escape.name], targets)
        held = meter.sustained_mb(HOLD_S)
        # Left by a process that was ended for it: the quota would end the next one too, for the wrong reason.
        for path in [*self.place.work.glob(f"*/filler-{self.place.run}"), *self.place.data.glob(f"tools/*/filler-{self.place.run}")]:
            path.unlink(missing_ok=True)
        effect = {}
        if escape.name.startswith("resources.memory") and held > kind.memory_mb * 3 // 2:
            effect = {escape.name: f"held {held} MiB for {HOLD_S} s, measured from outside; the limit is {kind.memory_mb} MiB"}
        if "reports" in answer:
            return answer["reports"][escape.name], effect
        if "not connected" in answer["error"]:
            return {"outcome": "absent", "evidence": "the server had not restarted yet: nothing was tried"}, effect
        return {"outcome": "refused", "evidence": f"ended: {answer['error']}"[:300]}, effect

    def effects(self, kind, bystander, signals, reports, files):
        """What was seen from outside, by the name of the escape."""
        found = {}
        changed = self.shared.changed()
        for escape in self.escapes.values():
            claimed = reports.get(escape.name, {}).get("outcome") == "reached"
            if escape.shared in changed and claimed:
                found[escape.name] = f"`{self.shared.paths[escape.shared]}` changed"
        claimed = {self.escapes[name].shared for name in found}
        # Of the machine's own files others may change something too: there only a claim counts.
        for name in changed - claimed - {"null", "zero", "interpreter", "passwd"}:
            self.rows.append(Row(self.user, kind.name, f"unclaimed.{name}", "reached", "changed, but no escape reports it"))
        for label, listener in self.listeners.heard.items():
            label_kind, _, name = label.partition("/")
            if label_kind == kind.name:
                found[name] = f"the listener `{listener}` heard it"
        for path, label in canaries.left_files(self.place, kind).items():
            found[label.partition("/")[2]] = f"`{path}` exists"
        if (self.place.loot / f"{kind.name}.tmux").exists():
            found["sockets.tmux"] = "a copy of the admin token exists"
        for name, escape in (("SIGUSR1", "processes.usr1_bystander"), ("SIGUSR2", "processes.sigio_bystander")):
            if name in bystander.signals():
                found[escape] = f"it received {name}"
        if self.stage.log().count("victim: signalled") > signals:
            found["processes.usr1_neighbour"] = "it was signalled"
        if queue_exists(f"hostile-{kind.name}-{self.place.run}"):
            found["processes.posix_queue"] = "the queue exists"
        found.update(self.leaks(kind, reports, files))
        return found

    def leaks(self, kind, reports, files):
        """Secrets in what the program reports, and credentials that still work."""
        secrets = {**files.secrets(), **{text: f"the secret `{name}`" for name, text in self.place.secrets.items()},
                   self.stage.token: "the admin token"}
        found = {}
        for name, report in reports.items():
            evidence = report["evidence"]
            for secret, what in secrets.items():
                if secret in evidence:
                    found[name] = f"it reports {what}"
            if evidence.startswith("credential="):
                body = {"op": "list", "module": kind.name}
                try:
                    self.stage.http("POST", "/v1/tool-runtime/records", body, evidence.removeprefix("credential="))
                    found[name] = "the credential works after the call"
                except OSError:
                    pass
        return found

    def labels(self, kind):
        """The names that the survivors of a kind give themselves (`attack/families/survivors.py`)."""
        known = [name for name in ESCAPES if name.startswith("survivors.")]
        return {f"gh{self.place.run[:4]}{kind.name[:4]}{number}": name for number, name in enumerate(known)
                if name in self.escapes and kind.families is None}

    def survivors(self, kind):
        """Those that are still running, after a moment in which the host may end them."""
        labels = self.labels(kind)
        deadline = time.monotonic() + 5
        while (alive := labels.keys() & processes.names().keys()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return {labels[label]: f"process `{label}` is still running" for label in alive}

    def outlive(self):
        """Kills the host: no process of it may stay; after a new start, no file of it either."""
        alive = {}
        staying = [kind for kind in self.kinds if kind.asked_as != "method" and self.wanted(kind)]
        for kind in staying:
            answer = self.ask_again(kind, list(self.labels(kind).values()))
            self.note_reports(kind, answer.get("reports", {}))
        wanted = {label for kind in staying for label in self.labels(kind)}
        started, deadline = set(), time.monotonic() + 3
        while not wanted <= started and time.monotonic() < deadline:
            started |= processes.names().keys()
        self.stage.kill()
        for kind in staying:
            alive[kind.name] = self.survivors(kind)
            # A survivor that never ran would prove nothing.
            alive[kind.name].update({name: "it did not run before the host was killed"
                                     for label, name in self.labels(kind).items() if label not in started})
        deadline = time.monotonic() + 5
        while (left := processes.tagged_any(self.place.run)) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.amend(alive)
        if left:
            self.rows.append(Row(self.user, "host", "survivors.any", "reached", f"{len(left)} processes outlive the host"))
        if any(escape.name.endswith("_tree") for escape in self.escapes.values()):
            self.stage.start()
            self.stage.wait_ready("victim")
            self.stage.stop()
            trees = [path for pattern in ("deep", "resources-closed_tree")
                     for path in glob.glob(f"{self.place.data}/run/**/{pattern}", recursive=True)
                     + glob.glob(f"/tmp/greenroom-*/**/{pattern}", recursive=True)]
            named = {"deep": "resources.deep_tree", "resources-closed_tree": "resources.closed_tree"}
            for kind in self.kinds:
                mine = [path for path in trees if f"/{kind.name}-" in path or kind.asked_as == "method" and "/module" in path]
                self.amend({kind.name: {named[os.path.basename(path)]: f"`{path}` is left" for path in mine}})

    def ask_again(self, kind, names):
        """A program that was ended for its last attempt may be starting again."""
        deadline = time.monotonic() + 15
        while True:
            answer = self.stage.ask(kind, names, self.last_targets[kind.name])
            if "reports" in answer or time.monotonic() > deadline:
                return answer

    def note_reports(self, kind, reports):
        self.rows = [replace(row, evidence=f"it ended with the host ({reports[row.name]['evidence']})")
                     if row.kind == kind.name and row.name in reports else row for row in self.rows]

    def amend(self, effects):
        """Adds effects that show later to the rows."""
        self.rows = [Row(row.user, row.kind, row.name, "reached", effects[row.kind][row.name])
                     if row.name in effects.get(row.kind, {}) else row for row in self.rows]

    def decide(self, attack):
        kind, effects = attack.kind, attack.effects
        for escape in attack.wanted:
            report = attack.reports.get(escape.name, {"outcome": "refused", "evidence": "no report"})
            outcome, evidence = report["outcome"], report["evidence"]
            if escape.name in effects:
                outcome, evidence = "reached", f"{effects[escape.name]} ({evidence})"
            elif escape.proof == "effect" and outcome == "reached":
                outcome, evidence = "refused", f"it reports success, but nothing is seen from outside ({evidence})"
            self.rows.append(Row(self.user, kind.name, escape.name, outcome, evidence))

    def close(self):
        self.stage.stop()
        for bystander in self.bystanders:
            bystander.end()
        self.listeners.close()
        self.shared.remove() if hasattr(self, "shared") else None
        for pid in processes.tagged_any(self.place.run):
            try:
                os.kill(pid, 9)
            except OSError:
                pass


def memory_available_mb():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) // 1024 for line in file if line.startswith("MemAvailable"))


def queue_exists(name):
    import ctypes
    libc = ctypes.CDLL(None)
    descriptor = libc.mq_open(f"/{name}".encode(), os.O_RDONLY)
    if descriptor < 0:
        return False
    os.close(descriptor)
    libc.mq_unlink(f"/{name}".encode())
    return True
