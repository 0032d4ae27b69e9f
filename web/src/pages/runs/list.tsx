// Runs, newest first.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function RunsPage() {
  const t = useT();
  return (
    <Page title={t("runs.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
