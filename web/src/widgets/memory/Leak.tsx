/** Whether memory grows: the series with the stated growth, and who holds what stays. */
import type { JSX } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { Surface, type Frame } from "../../canvas/Surface";
import { Tooltip } from "../../canvas/Tooltip";
import type { Axis, Range } from "../../canvas/viewport";
import { formatBytes } from "../../data/quantity";
import { t } from "../../i18n/language";
import { Figure } from "../Figure";
import { drawGrowth, GROWTH_HEIGHT } from "./growth";
import { type HeldSite, type LeakSeries, pointAt } from "./model";
import { useTheme } from "./theme";

const HOW =
  "Each point is what is alive after a step; the vertical axis does not begin at zero. The line has the growth that the verdict states, laid through the middle of the points behind the warm-up, and the band its interval.";
const CHANGE =
  "Points that come back to one level are no leak, however much they swing. A line that bends is a cache that fills: watch more steps with --leaks.";

export function Leak({ leak }: { readonly leak: LeakSeries }): JSX.Element {
  return (
    <Figure title="Does it grow?" how={HOW} change={CHANGE}>
      <p class={`caveat${leak.grows ? " failed" : " calm"}`}><strong>{t(leak.sentence)}</strong></p>
      {leak.steps.length > 1 ? <Series leak={leak} /> : <p class="note">{t("The series over the steps was not recorded.")}</p>}
      {leak.sites.length > 0 && <Sites leak={leak} />}
    </Figure>
  );
}

function Series({ leak }: { readonly leak: LeakSeries }): JSX.Element {
  const axis = useMemo<Axis>(() => {
    const [start, end] = [(leak.steps[0] ?? 0) - 0.5, (leak.steps.at(-1) ?? 1) + 0.5];
    return { start, end, least: Math.min(8, end - start) };
  }, [leak]);
  const [range, setRange] = useState<Range>(axis);
  const [spot, setSpot] = useState<{ readonly point: number; readonly x: number; readonly y: number } | null>(null);
  const frame = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const draw = useCallback((drawn: Frame) => drawGrowth(drawn, leak, spot?.point ?? null), [leak, spot?.point, theme]);
  return (
    <>
      <div class="drawn" ref={frame}>
        <Surface axis={axis} range={range} height={GROWTH_HEIGHT} label={leak.sentence} draw={draw} onRange={setRange}
          onPoint={(at) => setSpot(at && { point: pointAt(leak.steps, at.value + 0.5), x: at.x, y: at.y })} />
        {spot !== null && (
          <Tooltip x={spot.x} y={spot.y} width={frame.current?.clientWidth ?? 0}>
            <b>{t("step {number}", { number: leak.steps[spot.point] ?? 0 })}</b> {formatBytes(leak.live_bytes[spot.point] ?? 0)} {t("alive")}
          </Tooltip>
        )}
      </div>
      <p class="axis-ends"><span>{Math.ceil(range.start)}</span><span>{t("steps")}</span><span>{Math.floor(range.end)}</span></p>
    </>
  );
}

function Sites({ leak }: { readonly leak: LeakSeries }): JSX.Element {
  const most = Math.max(1e-9, ...leak.sites.map(({ bytes_per_step }) => bytes_per_step));
  return (
    <div class="sites">
      {leak.sites.map((site, i) => <Site key={i} site={site} most={most} open={i === 0} />)}
      {leak.more_sites > 0 && <p class="note">{t("and {number} more", { number: leak.more_sites })}</p>}
    </div>
  );
}

function Site({ site, most, open }: { readonly site: HeldSite; readonly most: number; readonly open: boolean }): JSX.Element {
  const facts: readonly (readonly [string, string])[] = [
    ["held by", [site.holder, site.container].filter((text) => text !== "").join(", ")],
    ["held at", site.holder_place],
    ["kind of holder", site.root],
    ["graph kept alive", site.graph],
    ["how often", site.every],
  ];
  return (
    <details class="site" open={open}>
      <summary>
        <span class="what"><b>{site.place}</b> {site.source !== "" && <code>{site.source}</code>}</span>
        <span class="much">{t("{bytes} per step", { bytes: formatBytes(site.bytes_per_step) })}{site.kind !== "leak" && ` · ${t(site.kind)}`}</span>
        <span class="length" style={{ width: `${Math.max(0.3, (site.bytes_per_step / most) * 100)}%` }}><i class="slot-6" style={{ flexGrow: 1 }} /></span>
      </summary>
      <dl class="facts long">
        {facts.filter(([, said]) => said !== "").map(([name, said]) => <div key={name}><dt>{t(name)}</dt><dd>{said}</dd></div>)}
      </dl>
      {site.chain.length > 0 && (
        <>
          <p class="note">{t("From the root to the tensor:")}</p>
          <ol class="chain">{site.chain.map((hop, i) => <li key={i}><code>{hop}</code></li>)}</ol>
        </>
      )}
      {site.fix !== "" && <><p class="note">{t("Write instead:")}</p><pre class="after">{site.fix}</pre></>}
    </details>
  );
}
