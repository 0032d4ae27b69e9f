// Placeholders: loading, empty, failed.
import type { ReactNode } from "react";
import { ApiError, isDatabaseDown } from "@/api/client";
import { useT, type T } from "@/i18n";
import { Button } from "./button";
import { Icon, type IconName } from "./icons";
import styles from "./states.module.css";

/** `lines` grey bars; one word for screen readers. */
export function Skeleton({ lines = 3, height = 16 }: { lines?: number; height?: number }) {
  const t = useT();
  return (
    <div className={styles["skeleton"]} role="status" aria-label={t("ui.loading")}>
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} style={{ height, width: `${[100, 86, 94, 72][index % 4]}%` }} />
      ))}
    </div>
  );
}

export function Empty({ icon = "info", title, children, action }: { icon?: IconName; title: ReactNode; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className={styles["empty"]}>
      <span className={styles["emptyIcon"]}>
        <Icon name={icon} size={24} />
      </span>
      <p className={styles["emptyTitle"]}>{title}</p>
      {children && <div className="muted">{children}</div>}
      {action}
    </div>
  );
}

/** A failed request: what happened, what to do, the code, and a retry button. */
export function ErrorBox({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const t = useT();
  const code = error instanceof ApiError ? error.code : null;
  return (
    <div className={styles["error"]} role="alert">
      <Icon name="error" size={20} />
      <div className={styles["errorText"]}>
        <strong>{sentenceOf(error, t)}</strong>
        {error instanceof Error && error.message && <div>{error.message}</div>}
        {code && (
          <div className={styles["code"]}>
            {t("ui.errorCode")}: <code>{code}</code>
          </div>
        )}
      </div>
      {onRetry && (
        <Button size="s" icon="refresh" onClick={onRetry}>
          {t("ui.retry")}
        </Button>
      )}
    </div>
  );
}

export function sentenceOf(error: unknown, t: T): string {
  if (!(error instanceof ApiError)) return t("ui.errorUnknown");
  if (error.status === 0) return t("ui.errorUnreachable");
  if (isDatabaseDown(error)) return t("ui.errorDatabase");
  if (error.status === 401) return t("ui.errorUnauthorized");
  if (error.status === 403) return t("ui.errorForbidden");
  if (error.status === 404) return t("ui.errorNotFound");
  if (error.status === 429) return t("ui.errorRateLimited");
  return t("ui.errorUnknown");
}

interface QueryLike<Data> {
  data: Data | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/** The three states of a query around its content: `<Loaded query={runs}>{(data) => …}</Loaded>`. */
export function Loaded<Data>({ query, children, skeleton }: { query: QueryLike<Data>; children: (data: Data) => ReactNode; skeleton?: ReactNode }) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <ErrorBox error={query.error} onRetry={() => void query.refetch()} />;
  return skeleton ?? <Skeleton />;
}
