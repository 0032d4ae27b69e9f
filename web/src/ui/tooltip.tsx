// Tooltips on hover and keyboard focus: one element for the whole page, so that long lists
// of controls cost nothing.
import { cloneElement, useEffect, useState, type ReactElement, type ReactNode } from "react";
import styles from "./floating.module.css";

const WAIT_MS = 400;

/** Marks its child; the provider shows the text. The child needs its own accessible name. */
export function Tooltip({ text, children }: { text: string; children: ReactElement<Record<string, unknown>> }) {
  return cloneElement(children, { "data-tip": text });
}

interface Tip {
  text: string;
  x: number;
  y: number;
  below: boolean;
}

export function TooltipProvider({ children }: { children: ReactNode }) {
  const [tip, setTip] = useState<Tip | null>(null);
  useEffect(() => watch(setTip), []);
  return (
    <>
      {children}
      {tip && (
        <div className={`${styles["tooltip"]} ${tip.below ? styles["below"] : ""}`} aria-hidden="true" style={{ left: tip.x, top: tip.y }}>
          {tip.text}
        </div>
      )}
    </>
  );
}

function watch(show: (tip: Tip | null) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const hide = () => {
    clearTimeout(timer);
    show(null);
  };
  const enter = (event: Event) => {
    const element = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-tip]") : null;
    const byTouch = event instanceof PointerEvent && event.pointerType !== "mouse";
    const byClick = event.type === "focusin" && !element?.matches(":focus-visible");
    if (!element || byTouch || byClick) return hide();
    clearTimeout(timer);
    timer = setTimeout(() => element.isConnected && show(positionOf(element)), WAIT_MS);
  };
  const on: [string, (event: Event) => void][] = [
    ["pointerover", enter],
    ["focusin", enter],
    ["focusout", hide],
    ["pointerdown", hide],
    ["keydown", hide],
    ["scroll", hide],
  ];
  for (const [name, listener] of on) document.addEventListener(name, listener, { capture: true, passive: true });
  return () => {
    clearTimeout(timer);
    for (const [name, listener] of on) document.removeEventListener(name, listener, { capture: true });
  };
}

/** Above its control, or below if there is no room. */
function positionOf(element: HTMLElement): Tip {
  const box = element.getBoundingClientRect();
  const below = box.top < 48;
  const x = Math.min(Math.max(box.left + box.width / 2, 80), window.innerWidth - 80);
  return { text: element.dataset["tip"] ?? "", x, y: below ? box.bottom + 6 : box.top - 6, below };
}
