// What a host tells that has done nothing yet: three steps, the first of them one click away.
import { useMutation, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { lazy, Suspense } from "react";
import { useLocation } from "wouter";
import { ApiError, get, post, type Page } from "@/api/client";
import type { Model } from "@/api/types";
import { useT } from "@/i18n";
import { Badge, Button, Icon, Logo, useTitle, useToast, type IconName } from "@/ui";
import { useSession } from "../approvals/use-session";
import styles from "./first-start.module.css";

const Code = lazy(() => import("@/ui/code").then((module) => ({ default: module.Code })));

const WITH_KEY = "OPENAI_API_KEY=… greenroom serve";
const NEW_RUNNER = `greenroom runner new --lang python --from plain hello
greenroom runner test python3 hello/runner.py
greenroom init`;
const BINDING = `[runners.hello]
command = ["python3", "runner.py"]
dir = "hello"

[agents.hello]
runner = "plugin:local/hello/default"`;

export function FirstStart({ onSkip }: { onSkip: () => void }) {
  const t = useT();
  useTitle(t("overview.welcome"));
  const models = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => get<Page<Model>>("/v1/models", {}, signal) });
  const real = models.data?.items.filter((model) => model.provider !== "scripted" && model.kind === "chat") ?? [];
  return (
    <div className={styles["page"]}>
      <header className={styles["head"]}>
        <Logo size={44} />
        <h1>{t("overview.welcome")}</h1>
        <p className="muted">{t("overview.welcome_lead")}</p>
      </header>
      <ol className={styles["steps"]}>
        <Step number={1} icon="chat" title={t("overview.step_say")} main>
          <p>{real[0] ? t("overview.step_say_key", { model: real[0].name }) : t("overview.step_say_text")}</p>
          <DemoButton />
        </Step>
        <Step number={2} icon="key" title={t("overview.step_key")} done={real.length > 0}>
          {real.length > 0 ? (
            <p>{t("overview.step_key_done", { models: real.map((model) => model.name).join(", ") })}</p>
          ) : (
            <>
              <p>{t("overview.step_key_text")}</p>
              <Commands text={WITH_KEY} language="sh" />
              <p className="muted">{t("overview.step_key_more")}</p>
            </>
          )}
        </Step>
        <Step number={3} icon="runners" title={t("overview.step_runner")}>
          <p>{t("overview.step_runner_text")}</p>
          <Commands text={NEW_RUNNER} language="sh" />
          <p>{t("overview.step_runner_then")}</p>
          <Commands text={BINDING} language="toml" />
        </Step>
      </ol>
      <Button variant="quiet" icon="overview" onClick={onSkip}>
        {t("overview.see_overview")}
      </Button>
    </div>
  );
}

interface StepProps {
  number: number;
  icon: IconName;
  title: string;
  children: ReactNode;
  done?: boolean;
  main?: boolean;
}

function Step({ number, icon, title, children, done, main }: StepProps) {
  const t = useT();
  return (
    <li className={styles["step"]} data-main={main ?? false}>
      <div className={styles["title"]}>
        <span className={styles["number"]}>{done ? <Icon name="check" size={16} /> : number}</span>
        <h2>{title}</h2>
        <span className="spacer" />
        {done ? <Badge tone="ok">{t("overview.step_done")}</Badge> : <Icon name={icon} size={20} />}
      </div>
      {children}
    </li>
  );
}

function Commands({ text, language }: { text: string; language: string }) {
  return (
    <Suspense fallback={<pre>{text}</pre>}>
      <Code text={text} language={language} />
    </Suspense>
  );
}

/** Sends a first message and goes to where the answer streams in. */
function DemoButton() {
  const t = useT();
  const toast = useToast();
  const session = useSession();
  const [, navigate] = useLocation();
  const demo = useMutation({
    mutationFn: async () => {
      const conversation = `demo-${Date.now().toString(36)}`;
      await post("/v1/events", {
        event_type: "message.received",
        conversation_id: conversation,
        actor: { actor_type: "user", actor_id: session.data?.name ?? "web" },
        input: { text: t("overview.step_say_first") },
      });
      return conversation;
    },
    onSuccess: (conversation) => navigate(`/chat/${conversation}`),
    onError: (error) => toast(`${t("overview.demo_failed")}: ${error instanceof ApiError ? error.message : String(error)}`, "bad"),
  });
  return (
    <Button variant="primary" icon="play" busy={demo.isPending} onClick={() => demo.mutate()}>
      {t("overview.step_say_button")}
    </Button>
  );
}
