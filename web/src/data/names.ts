/** Names out of programs as a reader sees them; Python has made their control characters visible already. */
import { t } from "../i18n/language";

/** A name on one line, with marks where it was broken; never nothing. */
export function named(name: string): string {
  if (name.trim() === "") return t("(unnamed)");
  return /[\r\n]/.test(name) ? name.trim().replace(/\s*[\r\n]+\s*/g, " ↵ ") : name;
}
