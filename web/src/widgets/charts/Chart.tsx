/** A drawing in SVG that can be read mark by mark, with the pointer or the keyboard, and saved as a picture. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Tooltip } from "../../canvas/Tooltip";
import { saveSvg, saveSvgAsPng } from "../../export/picture";
import { t } from "../../i18n/language";
import { Figure } from "../Figure";
import { nearest, stepped, type Spot } from "./marks";

/** What is drawn at a width. */
export interface Drawing {
  readonly height: number;
  readonly body: JSX.Element;
  /** Marks that can be read, in the order in which the arrow keys visit them. */
  readonly spots: readonly Spot[];
  /** What is drawn above the body while a mark is read; a ring around it otherwise. */
  readonly over?: (spot: number) => JSX.Element;
}

interface Props {
  readonly title: string;
  readonly how: string;
  readonly change?: string;
  /** What the drawing shows, for those who do not see it; in the reader's language. */
  readonly label: string;
  /** Name of saved pictures. */
  readonly name: string;
  readonly draw: (width: number) => Drawing;
  /** Whether it is read from left to right: then the mark above or below the pointer is meant. */
  readonly across?: boolean;
  /** The mark was clicked, or Enter pressed on it. */
  readonly onOpen?: (spot: number) => void;
  readonly tools?: ComponentChildren;
  /** Between the drawing and how to read it. */
  readonly below?: ComponentChildren;
}

export function Chart({ title, how, change, label, name, draw, across = false, onOpen, tools, below }: Props): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const picture = useRef<SVGSVGElement>(null);
  const width = useWidth(frame);
  const drawing = useMemo(() => (width > 0 ? draw(width) : null), [draw, width]);
  const [picked, pick] = useState<number | null>(null);
  const spot = picked === null ? undefined : drawing?.spots[picked];

  const at = (event: PointerEvent | MouseEvent): number | null => {
    const box = picture.current?.getBoundingClientRect();
    if (box === undefined || drawing === null || box.width === 0) return null;
    const zoom = width / box.width; // the picture may be shown smaller, in print or by the browser's zoom
    return nearest(drawing.spots, (event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom, across);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || drawing === null) return;
    if (event.key === "Enter" && picked !== null && onOpen !== undefined) onOpen(picked);
    const next = stepped(event.key, event.shiftKey, picked, drawing.spots.length);
    if (next === undefined || (next === null && picked === null)) return;
    event.preventDefault();
    event.stopPropagation();
    pick(next);
  };
  const open = (event: MouseEvent): void => {
    const meant = at(event);
    pick(meant);
    if (meant !== null) onOpen?.(meant);
  };
  return (
    <Figure title={title} how={how} {...(change === undefined ? {} : { change })} tools={<Tools picture={picture} name={name} tools={tools} />}>
      <div
        ref={frame}
        class={onOpen === undefined ? "drawing" : "drawing opens"}
        tabIndex={0}
        role="group"
        aria-label={t("{title}: arrow keys read the marks", { title: t(title) })}
        onKeyDown={onKey}
        onBlur={() => pick(null)}
        onPointerMove={(event) => pick(at(event))}
        onPointerLeave={() => pick(null)}
        onClick={open}
      >
        {drawing !== null && (
          <svg ref={picture} viewBox={`0 0 ${width} ${drawing.height}`} width="100%" role="img" aria-label={label}>
            {drawing.body}
            {spot !== undefined && picked !== null && (drawing.over?.(picked) ?? <circle class="ring" cx={spot.x} cy={spot.y} r={7} />)}
          </svg>
        )}
        {spot !== undefined && (
          <Tooltip x={spot.x} y={spot.y} width={width}>
            {spot.lines.map((line, i) => (i === 0 ? <strong key={i}>{line}</strong> : <div key={i}>{line}</div>))}
          </Tooltip>
        )}
      </div>
      {below}
    </Figure>
  );
}

interface ToolsProps {
  readonly picture: { readonly current: SVGSVGElement | null };
  readonly name: string;
  readonly tools: ComponentChildren;
}

function Tools({ picture, name, tools }: ToolsProps): JSX.Element {
  const save = (write: (svg: SVGSVGElement, name: string) => unknown) => () => {
    if (picture.current !== null) void write(picture.current, name);
  };
  return (
    <>
      {tools}
      <button type="button" onClick={save(saveSvg)} title={t("Save as SVG")}>
        SVG
      </button>
      <button type="button" onClick={save(saveSvgAsPng)} title={t("Save as PNG")}>
        PNG
      </button>
    </>
  );
}

/** The width of an element in CSS pixels, as it changes; 0 before it is known, and while it is hidden. */
function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watched = element.current;
    if (watched === null) return;
    const observer = new ResizeObserver(() => {
      if (watched.clientWidth > 0) setWidth(watched.clientWidth);
    });
    observer.observe(watched);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
