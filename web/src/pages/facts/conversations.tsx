// Conversations.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function ConversationsPage() {
  const t = useT();
  return (
    <Page title={t("shell.conversations")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
