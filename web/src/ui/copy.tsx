// A copy button.
import { useEffect, useState } from "react";
import { useT } from "@/i18n";
import { Button, IconButton } from "./button";
import { copyText } from "./clipboard";
import { useToast } from "./toast";

export function CopyButton({ text, label, size = "s", words }: { text: string; label?: string; size?: "s" | "m"; words?: boolean }) {
  const t = useT();
  const toast = useToast();
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1600);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = () => copyText(text).then(() => setDone(true), () => toast(t("ui.copyFailed"), "bad"));
  const name = done ? t("ui.copied") : (label ?? t("ui.copy"));
  const icon = done ? "check" : "copy";
  if (words) {
    return (
      <Button size={size} icon={icon} onClick={() => void copy()}>
        {name}
      </Button>
    );
  }
  return <IconButton icon={icon} size={size} iconSize={16} label={name} onClick={() => void copy()} />;
}
