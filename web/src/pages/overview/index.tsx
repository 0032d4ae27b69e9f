// How the host is doing.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function OverviewPage() {
  const t = useT();
  return (
    <Page title={t("overview.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
