// One agent.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function AgentPage() {
  const t = useT();
  return (
    <Page title={t("agents.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
