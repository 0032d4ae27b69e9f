// Talking to agents.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function ChatPage() {
  const t = useT();
  return (
    <Page title={t("chat.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
