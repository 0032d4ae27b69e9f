// Sign in: with the code of the address that the host printed, or with a token by hand.
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState, type FormEvent } from "react";
import { useLocation } from "wouter";
import { ApiError, post } from "@/api/client";
import { useLanguage, type Key, type T } from "@/i18n";
import { readSession } from "@/pages/approvals/use-session";
import { Button, Field, Icon, IconButton, Input, Logo, useTitle } from "@/ui";
import { codeIn, nextIn } from "./code";
import styles from "./signin.module.css";

type Credential = { code: string } | { token: string };

export default function SignInPage() {
  const { t } = useLanguage();
  useTitle(t("signin.title"));
  const { signIn, busy, error, withCode } = useSignIn();
  return (
    <main className={styles["page"]}>
      <div className={styles["card"]}>
        <div className={styles["brand"]}>
          <Logo size={32} />
          <span>Greenroom</span>
          <span className="spacer" />
          <LanguageSwitch />
        </div>
        <h1>{t("signin.title")}</h1>
        <p className="muted">{withCode && busy ? t("signin.with_code") : t("signin.lead")}</p>
        {error && (
          <p className={styles["error"]} role="alert">
            <Icon name="error" size={18} />
            {error}
          </p>
        )}
        <TokenForm busy={busy} onToken={(token) => void signIn({ token })} />
      </div>
    </main>
  );
}

/** Signs in, first of all with a code in the address, which is taken out of it before anything else. */
function useSignIn() {
  const { t } = useLanguage();
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const [code, setCode] = useState(() => codeIn(window.location.hash));
  const [withCode] = useState(code !== null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<{ error: unknown; credential: Credential } | null>(null);
  const signIn = useCallback(
    async (credential: Credential) => {
      setBusy(true);
      setProblem(null);
      try {
        await post("/v1/session", credential).catch((error: unknown) => {
          // A code that was used before does no harm to who is signed in already.
          if ("token" in credential) throw error;
          return readSession().then((session) => (session ? undefined : Promise.reject(error as Error)));
        });
        queries.clear();
        navigate(nextIn(window.location.search), { replace: true });
      } catch (error) {
        setProblem({ error, credential });
        setBusy(false);
      }
    },
    [navigate, queries],
  );
  const sent = useRef(false);
  useEffect(() => {
    if (window.location.hash) window.history.replaceState(window.history.state, "", window.location.pathname + window.location.search);
    if (!code || sent.current) return;
    sent.current = true;
    setCode(null);
    void signIn({ code });
  }, [code, signIn]);
  return { signIn, busy, withCode, error: problem && sentence(t, problem.error, problem.credential) };
}

function sentence(t: T, error: unknown, credential: Credential): string {
  if (!(error instanceof ApiError)) return t("signin.error_other", { message: String(error) });
  const byStatus: Record<number, Key> = {
    0: "signin.error_unreachable",
    401: "code" in credential ? "signin.error_code" : "signin.error_token",
    403: "signin.error_forbidden",
    429: "signin.error_rate",
  };
  const key = byStatus[error.status];
  return key ? t(key) : t("signin.error_other", { message: error.message });
}

function TokenForm({ busy, onToken }: { busy: boolean; onToken: (token: string) => void }) {
  const { t } = useLanguage();
  const [token, setToken] = useState("");
  const [shown, setShown] = useState(false);
  const [missing, setMissing] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setMissing(token.trim() === "");
    if (token.trim()) onToken(token.trim());
  };
  return (
    <form onSubmit={submit} className="stack" noValidate>
      <Field label={t("signin.token")} hint={t("signin.token_hint")} error={missing ? t("signin.error_empty") : undefined}>
        {(props) => (
          <span className={styles["token"]}>
            <Input
              {...props}
              type={shown ? "text" : "password"}
              value={token}
              autoComplete="current-password"
              spellCheck={false}
              autoCapitalize="none"
              autoFocus
              onChange={(event) => setToken(event.target.value)}
            />
            <IconButton icon="key" label={t(shown ? "signin.hide" : "signin.show")} aria-pressed={shown} onClick={() => setShown(!shown)} />
          </span>
        )}
      </Field>
      <pre className={styles["command"]}>{t("signin.token_command")}</pre>
      <Button type="submit" variant="primary" busy={busy}>
        {t(busy ? "signin.working" : "signin.submit")}
      </Button>
    </form>
  );
}

function LanguageSwitch() {
  const { language, setLanguage } = useLanguage();
  const other = language === "en" ? "zh" : "en";
  return (
    <Button variant="quiet" size="s" icon="language" lang={other === "zh" ? "zh-CN" : "en"} onClick={() => setLanguage(other)}>
      {other === "zh" ? "中文" : "English"}
    </Button>
  );
}
