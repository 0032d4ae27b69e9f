// One event.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function EventPage() {
  const t = useT();
  return (
    <Page title={t("shell.events")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
