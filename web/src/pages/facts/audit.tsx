// Audit.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function AuditPage() {
  const t = useT();
  return (
    <Page title={t("shell.audit")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
