// Short notices at the edge of the page: `const toast = useToast(); toast("done")`.
import { Toast as Radix } from "radix-ui";
import { createContext, useCallback, useContext, useRef, useState, type ReactNode } from "react";
import { useT } from "@/i18n";
import { IconButton } from "./button";
import styles from "./floating.module.css";

export type Notify = (text: string, tone?: "ok" | "bad") => void;
interface Notice {
  id: number;
  text: string;
  tone: "ok" | "bad";
}

const SHOWN_AT_ONCE = 4;
const Context = createContext<Notify>(() => undefined);

export function ToastProvider({ children }: { children: ReactNode }) {
  const t = useT();
  const [notices, setNotices] = useState<Notice[]>([]);
  const last = useRef(0);
  const notify = useCallback<Notify>((text, tone = "ok") => {
    const id = ++last.current;
    setNotices((now) => [...now.slice(1 - SHOWN_AT_ONCE), { id, text, tone }]);
  }, []);
  const drop = (id: number) => setNotices((now) => now.filter((notice) => notice.id !== id));
  return (
    <Context.Provider value={notify}>
      <Radix.Provider swipeDirection="right" duration={5000}>
        {children}
        {notices.map((notice) => (
          <Radix.Root
            key={notice.id}
            className={`${styles["toast"]} ${notice.tone === "bad" ? styles["bad"] : ""}`}
            onOpenChange={(open) => !open && drop(notice.id)}
          >
            <Radix.Description asChild>
              <p>{notice.text}</p>
            </Radix.Description>
            <Radix.Close asChild>
              <IconButton icon="close" size="s" label={t("ui.close")} />
            </Radix.Close>
          </Radix.Root>
        ))}
        <Radix.Viewport className={styles["toasts"]} />
      </Radix.Provider>
    </Context.Provider>
  );
}

export function useToast(): Notify {
  return useContext(Context);
}
