/** Language, theme and help, at the head of every page. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { themeChanged } from "../canvas/theme";
import { language, setLanguage, t } from "../i18n/language";
import { chooseTheme, chosenTheme, nextTheme, type Theme } from "./theme";

const THEMES: Readonly<Record<Theme, { readonly sign: string; readonly said: string }>> = {
  auto: { sign: "◐", said: "Theme: as the system" },
  light: { sign: "○", said: "Theme: light" },
  dark: { sign: "●", said: "Theme: dark" },
};

interface Props {
  readonly onHelp: () => void;
}

export function Controls({ onHelp }: Props): JSX.Element {
  const [theme, setTheme] = useState(chosenTheme);
  const other = language() === "en" ? "zh" : "en";
  const { sign, said } = THEMES[theme];
  return (
    <>
      <button type="button" lang={other} onClick={() => void setLanguage(other)}>
        {other === "zh" ? "中文" : "English"}
      </button>
      <button
        type="button"
        aria-label={t(said)}
        title={t(said)}
        onClick={() => {
          const next = nextTheme(theme);
          chooseTheme(next);
          themeChanged();
          setTheme(next);
        }}
      >
        {sign}
      </button>
      <button type="button" aria-label={t("Keys and help")} title={t("Keys and help")} onClick={onHelp}>
        ?
      </button>
    </>
  );
}
