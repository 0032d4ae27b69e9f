// Signing in.
import { useT } from "@/i18n";
import { Empty, Page } from "@/ui";

export default function SignInPage() {
  const t = useT();
  return (
    <Page title={t("signin.title")}>
      <Empty title={t("ui.empty")} />
    </Page>
  );
}
