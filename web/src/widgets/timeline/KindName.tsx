/** A kind in words, with the colour and hatching that it has in the drawing. */
import type { JSX } from "preact";
import { isHatched, kindWords, paintOf } from "../../canvas/kinds";
import { useThemeVersion } from "../../canvas/theme";
import { t } from "../../i18n/language";

export function KindName({ kind }: { readonly kind: string }): JSX.Element {
  useThemeVersion();
  return (
    <>
      <i class={isHatched(kind) ? "swatch hatched" : "swatch"} style={{ backgroundColor: paintOf(kind).plain }} />{" "}
      {t(kindWords(kind))}
    </>
  );
}
