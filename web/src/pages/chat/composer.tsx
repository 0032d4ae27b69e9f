// The composer: files by button, paste and drop; Enter sends; Escape offers to stop the run.
import { useEffect, useRef, useState, type ClipboardEvent, type DragEvent, type KeyboardEvent, type Ref } from "react";
import { useT } from "@/i18n";
import { Button, IconButton } from "@/ui";
import { AttachmentStrip } from "./attachment-strip";
import { useAttachments } from "./attachments";
import styles from "./composer.module.css";
import type { FileRef } from "./entry";

export interface ComposerProps {
  agent: string;
  text: string;
  onText: (text: string) => void;
  onSend: (text: string, files: FileRef[]) => void;
  /** A run can be stopped. */
  running: boolean;
  onStop: () => void;
  /** How a message sent now is queued. */
  hint: string | null;
  disabled: boolean;
  inputRef: Ref<HTMLTextAreaElement>;
}

const HEIGHT_MAX_PX = 220;

export function Composer(props: ComposerProps) {
  const t = useT();
  const attachments = useAttachments();
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const own = useRef<HTMLTextAreaElement>(null);
  useGrowing(own, props.text);
  const kept = attachments.files.some((file) => file.state === "kept");
  const ready = !props.disabled && !attachments.uploading && (props.text.trim() !== "" || kept);

  const send = () => {
    if (!ready) return;
    props.onSend(props.text.trim(), attachments.take());
    props.onText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter confirms an input method's composition.
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && props.running) {
      event.preventDefault();
      props.onStop();
    }
  };
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    attachments.add(event.clipboardData.files);
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    attachments.add(event.dataTransfer.files);
  };

  return (
    <form
      className={`${styles["composer"]} ${over ? styles["over"] : ""}`}
      onSubmit={(event) => (event.preventDefault(), send())}
      onDragOver={(event) => (event.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={onDrop}
    >
      {props.hint && <p className={styles["hint"]}>{props.hint}</p>}
      <div className={styles["box"]}>
        {over && <div className={styles["drop"]}>{t("chat.attachHere")}</div>}
        <AttachmentStrip files={attachments.files} onRemove={attachments.remove} />
        <textarea
          ref={(element) => {
            own.current = element;
            if (typeof props.inputRef === "function") props.inputRef(element);
            else if (props.inputRef) props.inputRef.current = element;
          }}
          className={styles["input"]}
          rows={1}
          value={props.text}
          aria-label={t("chat.messageLabel")}
          placeholder={t("chat.placeholder", { agent: props.agent })}
          disabled={props.disabled}
          onChange={(event) => props.onText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <div className={styles["tools"]}>
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              attachments.add(event.target.files ?? []);
              event.target.value = "";
            }}
          />
          <IconButton icon="paperclip" label={t("chat.attach")} disabled={props.disabled} onClick={() => picker.current?.click()} />
          <span className={styles["keys"]}>{t("chat.keys")}</span>
          {props.running && (
            <Button icon="stop" onClick={props.onStop}>
              {t("chat.stop")}
            </Button>
          )}
          <Button variant="primary" type="submit" icon="arrowUp" disabled={!ready} busy={attachments.uploading}>
            {t("chat.send")}
          </Button>
        </div>
      </div>
    </form>
  );
}

/** The field grows with its text, up to a limit. */
function useGrowing(field: React.RefObject<HTMLTextAreaElement | null>, text: string): void {
  useEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, HEIGHT_MAX_PX)}px`;
  }, [field, text]);
}
