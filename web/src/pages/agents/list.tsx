// Agents.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function AgentsPage() {
  const t = useT();
  return (
    <Page title={t("agents.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
