// Two runs side by side.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function CompareRunsPage() {
  const t = useT();
  return (
    <Page title={t("runs.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
