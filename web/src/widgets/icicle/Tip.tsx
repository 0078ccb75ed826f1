/** What is said of the node under the pointer. */
import type { JSX } from "preact";
import type { Spot } from "../../canvas/Surface";
import { Tooltip } from "../../canvas/Tooltip";
import { t } from "../../i18n/language";
import { figuresOf } from "./figures";
import { kindText } from "./label";
import type { Scene } from "./paint";
import { named } from "../../data/names";
import { kindOf, nameOf } from "./tree";

interface Props {
  readonly scene: Scene;
  readonly node: number;
  readonly spot: Spot;
  readonly width: number;
}

export function Tip({ scene: { tree, whole }, node, spot, width }: Props): JSX.Element {
  const name = nameOf(tree, node);
  return (
    <Tooltip x={spot.x} y={spot.y} width={width}>
      <strong class="icicle-name">{named(name)}</strong> <span class="icicle-kind">{kindText(kindOf(tree, node), name)}</span>
      <Figures lines={figuresOf(tree, node, whole)} compared={tree.sides.length > 1} />
    </Tooltip>
  );
}

interface FiguresProps {
  readonly lines: ReturnType<typeof figuresOf>;
  readonly compared: boolean;
}

/** Figures of a node as a small table. */
export function Figures({ lines, compared }: FiguresProps): JSX.Element {
  return (
    <table class="icicle-figures">
      {compared && (
        <thead>
          <tr>
            <td />
            <th scope="col">{t("before")}</th>
            <th scope="col">{t("after")}</th>
            <th scope="col">{t("change")}</th>
          </tr>
        </thead>
      )}
      <tbody>
        {lines.map((line) => (
          <tr key={line.label}>
            <th scope="row">{line.label}</th>
            {line.values.map((value, i) => (
              <td key={i}>{value}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
