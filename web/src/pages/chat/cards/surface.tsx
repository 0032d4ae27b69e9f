// A card of a tool, drawn with A2UI. Load this module lazily.
import { A2uiSurface, type ReactComponentImplementation } from "@a2ui/react/v0_9";
import { MessageProcessor, type A2uiMessage, type SurfaceModel } from "@a2ui/web_core/v0_9";
import { Component, useMemo, type ReactNode } from "react";
import type { Json } from "@/api/types";
import { useT } from "@/i18n";
import { actionOf, type CardAction } from "./action";
import styles from "./cards.module.css";
import { catalogues } from "./catalogue";

export interface CardSurfaceProps {
  label: string;
  operations: Json[];
  onAction: (action: CardAction) => void;
}

export default function CardSurface({ label, operations, onAction }: CardSurfaceProps) {
  const surfaces = useMemo(() => surfacesOf(operations, onAction), [operations, onAction]);
  if (!surfaces || surfaces.length === 0) return <Broken />;
  return (
    <div className={styles["surface"]} role="group" aria-label={label}>
      <Fence>
        {surfaces.map((surface) => (
          <A2uiSurface key={surface.id} surface={surface} />
        ))}
      </Fence>
    </div>
  );
}

/** Null for invalid A2UI operations. */
function surfacesOf(operations: Json[], onAction: (action: CardAction) => void): SurfaceModel<ReactComponentImplementation>[] | null {
  const surfaces: SurfaceModel<ReactComponentImplementation>[] = [];
  try {
    const processor = new MessageProcessor(catalogues, (action) => onAction(actionOf(action.name, action.context)));
    processor.onSurfaceCreated((surface) => surfaces.push(surface));
    processor.processMessages(operations as unknown as A2uiMessage[]);
    return surfaces;
  } catch {
    return null;
  }
}

function Broken() {
  const t = useT();
  return <p className="muted">{t("chat.cardBroken")}</p>;
}

/** Error boundary of a card. */
class Fence extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override render() {
    return this.state.broken ? <Broken /> : this.props.children;
  }
}
