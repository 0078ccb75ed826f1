/** What the colours say; in words too, since boxes and tooltips say it as well. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { useThemeVersion } from "../../canvas/theme";
import { t } from "../../i18n/language";
import type { Level } from "./change";
import { kindText, slot } from "./label";
import { palette } from "./palette";
import { kindOf, nameOf, type Tree } from "./tree";

const LEVELS: readonly (readonly [Level, string])[] = [
  [-3, "shrank by 23 % or more"],
  [-2, ""],
  [-1, ""],
  [0, "within 1 %"],
  [1, ""],
  [2, ""],
  [3, "grew by 30 % or more"],
];

export function Legend({ tree }: { readonly tree: Tree }): JSX.Element {
  const theme = useThemeVersion();
  const colours = useMemo(palette, [theme]);
  const kinds = useMemo(() => kindsOf(tree), [tree]);
  const entries =
    tree.sides.length > 1
      ? LEVELS.map(([level, text]) => ({ fill: colours.levels[level].fill, text: text && t(text) }))
      : kinds.map(([number, text]) => ({ fill: colours.kinds[number]?.fill ?? "", text }));
  return (
    <p class="icicle-legend">
      {entries.map(({ fill, text }, i) => (
        <span key={i}>
          <i style={{ background: fill }} />
          {text}
        </span>
      ))}
    </p>
  );
}

/** Colours that are drawn, each with all kinds that have it. */
function kindsOf(tree: Tree): [number, string][] {
  const drawn = new Map<number, Set<string>>();
  for (let node = 1; node < tree.parent.length; node++) {
    const [kind, name] = [kindOf(tree, node), nameOf(tree, node)];
    const number = slot(tree, node);
    drawn.set(number, (drawn.get(number) ?? new Set()).add(kindText(kind, name)));
  }
  return [...drawn].map(([number, texts]) => [number, (number === tree.rest ? `${t("other phases")}: ` : "") + [...texts].join(", ")]);
}
