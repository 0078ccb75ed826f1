/** Live bytes over a recording, by category. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Surface } from "../../canvas/Surface";
import { Tooltip } from "../../canvas/Tooltip";
import type { Axis, Range } from "../../canvas/viewport";
import { formatBytes, formatCount, formatSeconds } from "../../data/quantity";
import { saveCanvas } from "../../export/picture";
import { t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import { remember, type Route } from "../../shell/router";
import { Figure } from "../Figure";
import { numberIn } from "./address";
import { AREA_HEIGHT, drawArea, SIGNS } from "./area";
import { Ledger } from "./Ledger";
import { type Course as CourseRecord, type MemoryPart, phaseAt, pointAt, type Points, pointsOf, shareSaid, stacked } from "./model";
import { useTheme } from "./theme";

const HOW =
  "Each layer is a category, its height what is alive; the phases stand above. The broken line is the peak. Drag or A and D move, W and S or Ctrl and the wheel zoom, 0 shows all, P the peak; a click keeps an instant, comma and full stop step through them.";
const CHANGE =
  "Only what is alive at the peak can lower it: a layer that is thin there is not worth your time, however thick it is elsewhere.";

interface Props {
  readonly part: MemoryPart;
  readonly course: CourseRecord;
  readonly route: Route;
}

export function Course({ part, course, route }: Props): JSX.Element {
  const points = useMemo(() => pointsOf(course), [course]);
  const [byTime, setByTime] = useState(false);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [reserved, setReserved] = useState(true);
  const { range, setRange, pinned, pin, axis, places } = useView(points, byTime, route);
  const [pointed, setPointed] = useState<{ readonly point: number; readonly x: number; readonly y: number } | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const slots = useMemo(() => new Map(part.ledger.map(({ name, slot }) => [name, slot])), [part]);
  const tops = useMemo(() => stacked(points.layers, hidden), [points, hidden]);
  const shownReserved = reserved ? points.reserved : null;
  const most = useMemo(
    () => Math.max(1, ...(tops.at(-1)?.values ?? []), ...(shownReserved ?? [])) * 1.03,
    [tops, shownReserved],
  );
  const peakRange = (): Range => {
    const [middle, extent] = [places[course.peak] ?? 0, Math.max((axis.end - axis.start) / 8, axis.least)];
    return { start: middle - extent / 2, end: middle + extent / 2 };
  };
  const toPeak = (): void => {
    pin(course.peak);
    const { start, end } = peakRange();
    setRange({ start: Math.max(axis.start, start), end: Math.min(axis.end, end) });
  };
  const draw = useCallback(
    (drawn: Parameters<typeof drawArea>[0]) =>
      drawArea(drawn, {
        axis: places, tops, slots, reserved: shownReserved, phases: course.phases, marks: course.marks,
        peak: course.peak, peakBytes: course.peak_bytes, most,
        // Scratch memory inside of operators and the cache are in the peak, but no tensor shows them over time.
        peakName: t(part.peak_bytes > course.peak_bytes ? "peak of tensors alone" : "peak"), pinned, pointed: pointed?.point ?? null,
      }),
    [places, tops, slots, shownReserved, course, most, pinned, pointed?.point, theme],
  );
  const key = (pressed: string): boolean => {
    if (pressed === "p" || pressed === "P") toPeak();
    else if (pressed === "," || pressed === ".") pin(Math.min(places.length - 1, Math.max(0, (pinned ?? course.peak) + (pressed === "." ? 1 : -1))));
    else if (pressed === "Escape" && pinned !== null) pin(null);
    else return false;
    return true;
  };
  const save = (): void => {
    const canvas = frame.current?.querySelector("canvas");
    if (canvas) saveCanvas(canvas, "memory-over-time");
  };
  const tools = (
    <>
      {points.time !== null && (
        <select aria-label={t("Horizontal axis")} value={byTime ? "time" : "event"} onChange={(event) => setByTime(event.currentTarget.value === "time")}>
          <option value="event">{t("by allocation")}</option>
          <option value="time">{t("by time")}</option>
        </select>
      )}
      {points.reserved !== null && (
        <button type="button" aria-pressed={reserved} onClick={() => setReserved(!reserved)}>{t("Reserved")}</button>
      )}
      <button type="button" onClick={toPeak}>{t("To the peak")}</button>
      <button type="button" onClick={() => setRange({ start: axis.start, end: axis.end })}>{t("All")}</button>
      <button type="button" onClick={save}>{t("Save picture")}</button>
    </>
  );
  const toggle = (name: string): void => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    setHidden(next);
  };
  return (
    <Figure title="Live bytes by category" how={HOW} change={CHANGE} tools={tools}>
      <div class="drawn" ref={frame}>
        <Surface
          axis={axis}
          range={range}
          height={AREA_HEIGHT}
          label={t("Live bytes over {events} allocations and frees; peak {peak}", { events: formatCount(points.event.at(-1) ?? 0), peak: part.peak_said })}
          draw={draw}
          onRange={setRange}
          onPoint={(spot) => setPointed(spot && { point: pointAt(places, spot.value), x: spot.x, y: spot.y })}
          onPress={(spot) => pin(pointAt(places, spot.value))}
          onKey={key}
        />
        {pointed !== null && (
          <Tooltip x={pointed.x} y={pointed.y} width={frame.current?.clientWidth ?? 0}>
            <Readout points={points} course={course} slots={slots} point={pointed.point} />
          </Tooltip>
        )}
      </div>
      <AxisEnds range={range} byTime={byTime} />
      {course.marks.length > 0 && <Marks course={course} />}
      <Ledger part={part} layers={points.layers} hidden={hidden} onToggle={toggle}
        instant={pinned === null ? null : { point: pinned, said: instantSaid(points, course, pinned) }} onLeave={() => pin(null)} />
    </Figure>
  );
}

/** The range in view and the instant that is kept, both also in the address. Ranges there count allocations. */
function useView(points: Points, byTime: boolean, route: Route) {
  const places = byTime && points.time !== null ? points.time : points.event;
  const axis = useMemo<Axis>(() => {
    const [start, end] = [places[0] ?? 0, places.at(-1) ?? 1];
    const extent = Math.max(end - start, 1e-9);
    return { start, end: start + extent, least: extent * Math.min(0.5, 6 / places.length) };
  }, [places]);
  const [span, setSpan] = useState<readonly [number, number]>([0, 1]); // shares of the axis, the same for both
  const [pinned, setPinned] = useState<number | null>(null);
  useEffect(() => {
    const extent = Math.max((points.event.at(-1) ?? 1) - (points.event[0] ?? 0), 1e-9);
    const share = (value: number | null, otherwise: number): number =>
      value === null ? otherwise : Math.min(1, Math.max(0, (value - (points.event[0] ?? 0)) / extent));
    const [from, to] = [share(numberIn(route.parameters, "from"), 0), share(numberIn(route.parameters, "to"), 1)];
    setSpan(from < to ? [from, to] : [0, 1]);
    if (from >= to) leaveOut(["from", "to"].flatMap((key) => (key in route.parameters ? [`${key}=${route.parameters[key]}`] : [])));
    const at = numberIn(route.parameters, "at");
    setPinned(at === null ? null : pointAt(points.event, at));
  }, [route, points]);
  const whole = axis.end - axis.start;
  const range = useMemo<Range>(() => ({ start: axis.start + span[0] * whole, end: axis.start + span[1] * whole }), [axis, span, whole]);
  const setRange = (next: Range): void => {
    const [from, to] = [(next.start - axis.start) / whole, (next.end - axis.start) / whole];
    setSpan([from, to]);
    const noted = (share: number): string => {
      const point = pointAt(places, axis.start + share * whole);
      return String(points.event[point] ?? 0);
    };
    const all = from <= 0 && to >= 1;
    remember(route.page, { from: all ? null : noted(from), to: all ? null : noted(to) });
  };
  const pin = (point: number | null): void => {
    setPinned(point);
    remember(route.page, { at: point === null ? null : String(points.event[point] ?? 0) }, true);
  };
  return { range, setRange, pinned, pin, axis, places };
}

/** When an instant was, in words. */
function instantSaid(points: Points, course: CourseRecord, point: number): string {
  const phase = phaseAt(course.phases, point);
  const time = points.time?.[point];
  return [
    (points.event[point] ?? 0) < 0 ? t("before the first event") : t("event {number}", { number: formatCount(points.event[point] ?? 0) }),
    ...(phase === null ? [] : [t(phase)]),
    ...(time === undefined ? [] : [formatSeconds(time)]),
  ].join(" · ");
}

function Readout({ points, course, slots, point }: { readonly points: Points; readonly course: CourseRecord; readonly slots: ReadonlyMap<string, number>; readonly point: number }): JSX.Element {
  const total = points.layers.reduce((sum, { values }) => sum + (values[point] ?? 0), 0);
  const here = course.marks.filter((mark) => mark.point === point);
  return (
    <div class="readout">
      <p><b>{instantSaid(points, course, point)}</b></p>
      <table>
        <tbody>
          {[...points.layers].reverse().filter(({ values }) => (values[point] ?? 0) > 0).map(({ name, values }) => (
            <tr key={name}>
              <th scope="row"><i class={`swatch slot-${slots.get(name) ?? 5}`} />{t(name)}</th>
              <td>{formatBytes(values[point] ?? 0)}</td>
              <td>{total > 0 ? shareSaid((values[point] ?? 0) / total) : ""}</td>
            </tr>
          ))}
          <tr class="sum"><th scope="row">{t("alive")}</th><td>{formatBytes(total)}</td><td /></tr>
          {points.reserved !== null && <tr><th scope="row">{t("reserved")}</th><td>{formatBytes(points.reserved[point] ?? 0)}</td><td /></tr>}
        </tbody>
      </table>
      {here.map((mark) => <p key={mark.text}>{SIGNS[mark.kind]} {t(mark.text)}</p>)}
    </div>
  );
}

function AxisEnds({ range, byTime }: { readonly range: Range; readonly byTime: boolean }): JSX.Element {
  const said = (value: number): string => (byTime ? formatSeconds(Math.max(0, value)) : formatCount(Math.max(0, Math.round(value))));
  return (
    <p class="axis-ends">
      <span>{said(range.start)}</span>
      <span>{byTime ? t("time since the first event") : t("allocations and frees")}</span>
      <span>{said(range.end)}</span>
    </p>
  );
}

const MOST_MARKS = 6;

function Marks({ course }: { readonly course: CourseRecord }): JSX.Element {
  return (
    <ul class="marks">
      {course.marks.slice(0, MOST_MARKS).map((mark, i) => <li key={i}><b>{SIGNS[mark.kind]}</b> {t(mark.text)}</li>)}
      {course.marks.length > MOST_MARKS && <li>{t("and {number} more", { number: course.marks.length - MOST_MARKS })}</li>}
    </ul>
  );
}
