// State.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function StatePage() {
  const t = useT();
  return (
    <Page title={t("shell.state")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
