/** One graph: where the reader is in it, its drawing, a search, and what is selected. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../../i18n/language";
import { useScene } from "./arranging";
import { type GraphContent, marksByUnit } from "./content";
import { Details } from "./Details";
import { Drawing } from "./Drawing";
import { Export } from "./Export";
import { Legend } from "./Legend";
import { marksOf, type Overlay, paint } from "./overlay";
import { ALL, type Path, pathTo, type Scene, standsOf, unitOfBox } from "./scene";
import { search } from "./search";
import { Tip } from "./Tip";
import { Trail } from "./Trail";

interface Props {
  readonly graph: GraphContent;
  readonly path: Path;
  /** The selected unit; -1: none. */
  readonly unit: number;
  readonly overlay: Overlay;
  /** Units that stand for what is selected in the other graph. */
  readonly twins: readonly number[];
  readonly onPath: (path: Path, unit: number) => void;
  readonly onUnit: (unit: number) => void;
  /** Above the drawing, such as the choice of the graph. */
  readonly children: ComponentChildren;
}

export function Pane({ graph, path, unit, overlay, twins, onPath, onUnit, children }: Props): JSX.Element {
  const stands = useMemo(() => standsOf(graph, path), [graph, path]);
  const stand = stands[stands.length - 1] ?? { title: "", level: 0 };
  const drawn = useScene(graph, stand);
  const marks = useMemo(() => marksByUnit(graph), [graph]);
  const [query, setQuery] = useState("");
  const found = useMemo(() => search(graph, query), [graph, query]);
  const field = useRef<HTMLInputElement>(null);
  const pane = useRef<HTMLDivElement>(null);
  const scene = drawn.state === "ready" ? drawn.scene : null;
  const painted = useMemo(() => (scene === null ? null : paint(graph, scene, overlay, marks)), [graph, scene, overlay, marks]);
  const selected = scene?.boxOfUnit.get(unit) ?? -1;
  const marked = useMemo(
    () => ({ selected, found: boxesOf(scene, found), twins: boxesOf(scene, twins), flagged: flaggedIn(scene, marks) }),
    [scene, selected, found, twins, marks],
  );
  const focus = useFocus(scene, unit, twins);
  const open = (box: number): void => {
    const inside = scene?.boxes[box]?.units.length ?? 0;
    const there = inside === 0 ? unitOfBox(scene?.boxes[box]) : -1;
    if (there >= 0) goTo(there);
    else if (stand.level >= 0 && inside > 1 && path.at(-1) !== ALL) onPath([...path, box], -1);
  };
  const goTo = (one: number): void => {
    if (scene?.boxOfUnit.has(one) === true && scene.boxes[scene.boxOfUnit.get(one) ?? -1]?.units.length === 1) onUnit(one);
    else onPath(pathTo(graph, one), one);
  };
  const next = (back: boolean): void => {
    const place = found.indexOf(unit);
    const one = found.at(back ? (place <= 0 ? -1 : place - 1) : (place + 1) % Math.max(found.length, 1));
    if (one !== undefined) goTo(one);
  };
  const onKey = (key: string): boolean => {
    if (key === "/") field.current?.focus();
    else if (key === "Escape" && (unit >= 0 || query !== "" || path.length > 0)) {
      if (unit >= 0) onUnit(-1);
      else if (query !== "") setQuery("");
      else onPath(path.slice(0, -1), -1);
    } else if (key === "Enter" && selected >= 0) open(selected);
    else if (scene !== null && (key === "ArrowDown" || key === "ArrowUp")) onUnit(neighbour(scene, selected, key === "ArrowDown"));
    else return false;
    return true;
  };
  const box = scene?.boxes[selected];
  const canOpen = box !== undefined && (box.outside.length > 0 || (box.units.length > 1 && stand.level >= 0));
  return (
    <div class="graph-pane" ref={pane}>
      <div class="tools">
        {children}
        <input
          ref={field}
          type="search"
          placeholder={t("Search operations")}
          aria-label={t("Search operations, modules, lines")}
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") next(event.shiftKey);
            else if (event.key === "Escape") setQuery("");
          }}
        />
        {query !== "" && (
          <span class="note" role="status">
            {t("{count} found; Enter goes to the next", { count: found.length })}
          </span>
        )}
      </div>
      <div class="graph-bar">
        <Trail graph={graph} stands={stands} path={path} onPath={(to) => onPath(to, -1)} />
        {scene !== null && (
          <Export scene={scene} title={`graph ${graph.title}`} drawing={() => pane.current?.querySelector<SVGSVGElement>(".graph-svg") ?? null} />
        )}
      </div>
      {drawn.state === "arranging" && <p class="graph-waiting note">{t("Arranging…")}</p>}
      {drawn.state === "failed" && (
        <p class="caveat failed">
          {t("This part cannot be arranged here ({why}); without a worker at most {most} boxes are.", {
            why: drawn.why,
            most: drawn.most,
          })}
        </p>
      )}
      {scene !== null && painted !== null && (
        <>
          <Drawing
            scene={scene}
            painted={painted}
            marked={marked}
            focus={focus}
            label={t("Graph {title}: {boxes} boxes", { title: graph.title, boxes: scene.boxes.length })}
            tip={(number) => {
              const one = scene.boxes[number];
              return one === undefined ? <></> : <Tip graph={graph} box={one} marks={marks} />;
            }}
            onSelect={(number) => onUnit(unitOfBox(scene.boxes[number]))}
            onOpen={open}
            onKey={onKey}
          />
          <Legend painted={painted} overlay={overlay} />
        </>
      )}
      {drawn.state === "ready" && drawn.plainly && (
        <p class="note">{t("Arranged plainly: this browser starts no workers from this page.")}</p>
      )}
      {box !== undefined && (
        <Details
          graph={graph}
          box={box}
          marks={marks}
          onUnit={goTo}
          onOpen={canOpen ? () => open(selected) : null}
          onClose={() => onUnit(-1)}
        />
      )}
    </div>
  );
}

/** A new object whenever something else is to be brought into view. */
function useFocus(scene: Scene | null, unit: number, twins: readonly number[]): { readonly box: number } | null {
  const [focus, setFocus] = useState<{ readonly box: number } | null>(null);
  const sought = unit >= 0 ? unit : (twins[0] ?? -1);
  useEffect(() => {
    const box = scene?.boxOfUnit.get(sought);
    setFocus(box === undefined ? null : { box });
  }, [scene, sought]);
  return focus;
}

function boxesOf(scene: Scene | null, units: readonly number[]): ReadonlySet<number> {
  return new Set(units.flatMap((unit) => scene?.boxOfUnit.get(unit) ?? []));
}

function flaggedIn(scene: Scene | null, marks: ReturnType<typeof marksByUnit>): ReadonlySet<number> {
  return new Set(scene?.boxes.flatMap((box, number) => (marksOf(box, marks).length > 0 ? [number] : [])) ?? []);
}

/** The first unit of a box that a line leads to, or comes from; of the first box where none is selected. */
function neighbour(scene: Scene, selected: number, down: boolean): number {
  const edge = scene.edgesOfBox[selected]
    ?.map((number) => scene.edges[number])
    .find((one) => (down ? one?.source : one?.target) === selected);
  const box = selected < 0 ? 0 : down ? edge?.target : edge?.source;
  return unitOfBox(scene.boxes[box ?? selected]);
}
