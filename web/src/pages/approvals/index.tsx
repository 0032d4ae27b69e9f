// Approvals inbox.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function ApprovalsPage() {
  const t = useT();
  return (
    <Page title={t("approvals.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
