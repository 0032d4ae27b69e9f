// Artifacts.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function ArtifactsPage() {
  const t = useT();
  return (
    <Page title={t("shell.artifacts")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
