// The event log.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function EventsPage() {
  const t = useT();
  return (
    <Page title={t("shell.events")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
