/** The drawing as a file: a picture, or text for Graphviz. */
import type { JSX } from "preact";
import { download } from "../../export/download";
import { saveSvg, saveSvgAsPng } from "../../export/picture";
import { t } from "../../i18n/language";
import { sceneDot } from "./dot";
import type { Scene } from "./scene";

interface Props {
  readonly scene: Scene;
  readonly title: string;
  /** The drawing's element, as it is when a picture is asked for. */
  readonly drawing: () => SVGSVGElement | null;
}

export function Export({ scene, title, drawing }: Props): JSX.Element {
  const picture = (save: (svg: SVGSVGElement) => unknown): void => {
    const svg = drawing();
    if (svg !== null) save(svg);
  };
  return (
    <span class="graph-export" role="group" aria-label={t("Save this drawing")}>
      <button type="button" title={t("Save what is in view as SVG")} onClick={() => picture((svg) => saveSvg(svg, title))}>
        SVG
      </button>
      <button type="button" title={t("Save what is in view as PNG")} onClick={() => picture((svg) => void saveSvgAsPng(svg, title))}>
        PNG
      </button>
      <button
        type="button"
        title={t("Save the whole drawing as text for Graphviz")}
        onClick={() => download(`${title}.dot`, sceneDot(scene, title), "text/vnd.graphviz")}
      >
        DOT
      </button>
    </span>
  );
}
