// Language, appearance and sign-out, at the bottom of the side bar.
import { useLocation } from "wouter";
import { del, SIGNED_OUT } from "@/api/client";
import { useLanguage } from "@/i18n";
import { useTheme } from "@/theme/theme";
import { IconButton, Menu, MenuItem, MenuLabel, useToast } from "@/ui";
import styles from "./frame.module.css";

export function Preferences() {
  const { t, language, setLanguage } = useLanguage();
  const { theme, setTheme } = useTheme();
  const [, navigate] = useLocation();
  const toast = useToast();
  const signOut = () =>
    del("/v1/session").then(
      () => {
        window.dispatchEvent(new CustomEvent(SIGNED_OUT));
        navigate("/signin");
      },
      () => toast(t("shell.signedOutFailed"), "bad"),
    );
  return (
    <div className={styles["preferences"]}>
      <Menu align="start" trigger={<IconButton icon="language" label={t("shell.language")} />}>
        <MenuLabel>{t("shell.language")}</MenuLabel>
        <MenuItem checked={language === "en"} onSelect={() => setLanguage("en")}>
          English
        </MenuItem>
        <MenuItem checked={language === "zh"} onSelect={() => setLanguage("zh")}>
          中文
        </MenuItem>
      </Menu>
      <Menu align="start" trigger={<IconButton icon={theme === "dark" ? "moon" : "sun"} label={t("shell.theme")} />}>
        <MenuLabel>{t("shell.theme")}</MenuLabel>
        <MenuItem checked={theme === "system"} onSelect={() => setTheme("system")}>
          {t("shell.themeSystem")}
        </MenuItem>
        <MenuItem checked={theme === "light"} onSelect={() => setTheme("light")}>
          {t("shell.themeLight")}
        </MenuItem>
        <MenuItem checked={theme === "dark"} onSelect={() => setTheme("dark")}>
          {t("shell.themeDark")}
        </MenuItem>
      </Menu>
      <div className="spacer" />
      <IconButton icon="signOut" label={t("shell.signOut")} onClick={() => void signOut()} />
    </div>
  );
}
