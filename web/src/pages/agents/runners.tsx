// Runners.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function RunnersPage() {
  const t = useT();
  return (
    <Page title={t("shell.runners")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
