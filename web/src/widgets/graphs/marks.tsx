/** Boxes and lines as SVG elements. */
import type { JSX } from "preact";
import type { Frame } from "./camera";
import type { Marked } from "./Drawing";
import type { Mixture, Painted } from "./overlay";
import type { Scene, SceneBox, SceneEdge } from "./scene";

const ROUND = new Set(["input", "output", "attribute"]);
const CHARACTER = 6.1;

/** What of a drawing lies in a frame. */
export function shapes(scene: Scene, painted: Painted, marked: Marked, frame: Frame, words: boolean): JSX.Element {
  const near = new Set(scene.edgesOfBox[marked.selected] ?? []);
  const edges: JSX.Element[] = [];
  const above: JSX.Element[] = [];
  scene.edges.forEach((edge, number) => {
    if (!touches(edge, frame)) return;
    (near.has(number) ? above : edges).push(line(edge, number, near.has(number) ? side(edge, marked.selected) : ""));
  });
  const boxes: JSX.Element[] = [];
  scene.boxes.forEach((box, number) => {
    if (box.x > frame.right || box.x + box.width < frame.left || box.y > frame.bottom || box.y + box.height < frame.top) return;
    boxes.push(shape(box, number, painted.slots[number] ?? "soft", painted.words[number] ?? null, painted.mixtures[number] ?? [], marked, words));
  });
  return (
    <>
      {edges}
      {above}
      {boxes}
    </>
  );
}

function touches(edge: SceneEdge, frame: Frame): boolean {
  return edge.left <= frame.right && edge.right >= frame.left && edge.top <= frame.bottom && edge.bottom >= frame.top;
}

function side(edge: SceneEdge, selected: number): string {
  return edge.target === selected ? " enters" : " leaves";
}

function line(edge: SceneEdge, number: number, cls: string): JSX.Element {
  return <path key={`e${number}`} class={`graph-edge${cls}`} d={edge.path} />;
}

function shape(box: SceneBox, number: number, slot: string, word: string | null, mixture: Mixture, marked: Marked, words: boolean): JSX.Element {
  const round = ROUND.has(box.kind) || box.units.length === 0;
  const classes = [
    "graph-box",
    number === marked.selected ? "chosen" : "",
    marked.found.has(number) ? "found" : "",
    marked.twins.has(number) ? "twin" : "",
    box.units.length === 0 ? "outside" : "",
  ];
  const radius = round ? box.height / 2 : 6;
  const detail = word === null ? box.detail : cut(word, box.width);
  const two = detail !== "" && box.height > 30;
  const shown = two || word === null ? box.label : detail;
  const middle = box.width / 2;
  return (
    <g
      key={number}
      class={classes.filter(Boolean).join(" ")}
      data-box={number}
      transform={`translate(${box.x} ${box.y})`}
      style={{ "--box": `var(--${slot})` }}
    >
      {box.units.length > 1 && <rect class="behind" x={4} y={4} width={box.width} height={box.height} rx={radius} />}
      <rect class="ground" width={box.width} height={box.height} rx={radius} />
      <rect class="tint" width={box.width} height={box.height} rx={radius} />
      {!round && <rect class="bar" y={6} width={4} height={box.height - 12} />}
      {strip(mixture, box)}
      {words && (
        <text class="name" x={middle} y={two ? 17 : box.height / 2 + 4.5} text-anchor="middle">
          {shown}
          {box.owner !== "" && <tspan class="of" dx="6">{box.owner}</tspan>}
        </text>
      )}
      {words && two && (
        <text class="what" x={middle} y={32} text-anchor="middle">
          {detail}
        </text>
      )}
      {marked.flagged.has(number) && (
        <g class="flag">
          <circle cx={box.width} cy={0} r={8} />
          <text x={box.width} y={4} text-anchor="middle">
            !
          </text>
        </g>
      )}
    </g>
  );
}

/** What a box of several operations is made of, along its lower edge. */
function strip(mixture: Mixture, box: SceneBox): JSX.Element[] {
  let start = 7;
  const length = box.width - 14;
  return mixture.map(([slot, share]) => {
    const part = <rect key={slot} class="part" x={start} y={box.height - 4.5} width={share * length} height={3.5} style={{ "--box": `var(--${slot})` }} />;
    start += share * length;
    return part;
  });
}

function cut(text: string, width: number): string {
  const most = Math.max(Math.floor((width - 14) / CHARACTER), 4);
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
