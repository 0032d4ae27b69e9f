// Error boundary of a page: the navigation stays usable.
import { Component, type ReactNode } from "react";
import { useT } from "@/i18n";
import { Button, Empty } from "@/ui";

export class Boundary extends Component<{ children: ReactNode }, { error: Error | null; at: string }> {
  override state = { error: null as Error | null, at: window.location.pathname };

  static getDerivedStateFromError(error: Error) {
    return { error, at: window.location.pathname };
  }

  override render() {
    // Another page resets the error.
    if (this.state.error && this.state.at === window.location.pathname) return <Crashed error={this.state.error} />;
    return this.props.children;
  }
}

function Crashed({ error }: { error: Error }) {
  const t = useT();
  return (
    <div role="alert">
      <Empty
        icon="warning"
        title={t("shell.crashed")}
        action={
          <Button icon="refresh" onClick={() => window.location.reload()}>
            {t("shell.reload")}
          </Button>
        }
      >
        <p>{t("shell.crashedHint")}</p>
        <code>{error.message}</code>
      </Empty>
    </div>
  );
}
