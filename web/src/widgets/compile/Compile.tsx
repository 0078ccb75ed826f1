/** What compiling cost, compilation by compilation, and why frames were compiled again. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Tooltip } from "../../canvas/Tooltip";
import { formatSeconds, formatShare } from "../../data/quantity";
import { t } from "../../i18n/language";
import { leaveOut } from "../../shell/notice";
import type { Route } from "../../shell/router";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { type CompilationRow, type CompileContent, partsOf } from "./content";
import { Recompiles } from "./Recompiles";

const MOST_BARS = 12;
const RECOMPILES = "recompiles";

export function Compile({ blocks, place, route }: WidgetProps): JSX.Element {
  return (
    <Loaded<CompileContent> blocks={blocks} name={place["block"] ?? "compile"}>
      {(content) => <Parts content={content} route={route} />}
    </Loaded>
  );
}

function Parts({ content, route }: { readonly content: CompileContent; readonly route: Route }): JSX.Element {
  const see = route.parameters["see"];
  const isAgain = content.frames.length > 0;
  useEffect(() => {
    if (see !== undefined && !(isAgain && see === RECOMPILES)) leaveOut([`see=${see}`]);
  }, [route]);
  return (
    <>
      {content.totals_s.some((seconds) => seconds > 0) && <Phases content={content} />}
      {isAgain && (
        <div class={see === RECOMPILES ? "asked" : ""}>
          <Recompiles frames={content.frames} />
        </div>
      )}
    </>
  );
}

function Phases({ content }: { readonly content: CompileContent }): JSX.Element {
  const [all, setAll] = useState(false);
  const [byShare, setByShare] = useState(false);
  const [only, setOnly] = useState<number | null>(null);
  const { slots } = content;
  const timed = content.compilations.filter((one) => one.phases_s.some((seconds) => seconds > 0));
  const ordered = [...timed].sort((a, b) => total(b.phases_s) - total(a.phases_s));
  const rows = all ? ordered : ordered.slice(0, MOST_BARS);
  const whole = total(content.totals_s);
  const longest = (seconds: readonly number[]): number => (byShare ? total(seconds) : Math.max(whole, ...rows.map((one) => total(one.phases_s))));
  const tools = (
    <>
      <button type="button" aria-pressed={byShare} onClick={() => setByShare(!byShare)}>
        {t("Each as 100 %")}
      </button>
      {ordered.length > MOST_BARS && (
        <button type="button" aria-pressed={all} onClick={() => setAll(!all)}>
          {t("All {count} compilations", { count: ordered.length })}
        </button>
      )}
    </>
  );
  const legend = content.phases
    .map((name, phase) => ({ name, phase, seconds: content.totals_s[phase] ?? 0 }))
    .filter(({ seconds }) => seconds > 0)
    .sort((a, b) => b.seconds - a.seconds);
  return (
    <Figure title="Where compile time goes" how={HOW} change={CHANGE} tools={tools}>
      <div class="phase-bars">
        <Bar name={t("in all")} detail={formatSeconds(content.compile_s)} seconds={content.totals_s} {...{ content, slots, only }} longest={longest(content.totals_s)} />
        {rows.map((one) => (
          <Bar
            key={one.compile_id}
            name={one.compile_id}
            detail={detailOf(one)}
            seconds={one.phases_s}
            {...{ content, slots, only }}
            longest={longest(one.phases_s)}
          />
        ))}
      </div>
      <ul class="legend phase-legend">
        {legend.map(({ name, phase, seconds }) => (
          <li key={name}>
            <button type="button" aria-pressed={only === phase} onClick={() => setOnly(only === phase ? null : phase)}>
              <span class="swatch" style={{ background: `var(--phase-${slots[phase] ?? 9})` }} />
              {t(name)} <strong>{formatShare(seconds / whole)}</strong> <span>{formatSeconds(seconds)}</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="note">{cacheText(content)}</p>
    </Figure>
  );
}

const HOW =
  "A bar per compilation, as long as the program waited for it; 2/1 is the second compilation of the third frame. Each phase counts its own time, without the phases inside of it. Press a phase to see it alone.";
const CHANGE =
  "Warm caches take most of the time behind tracing away: compare a second start. Work on compile threads runs beside the program and counts only while it is waited for.";

interface BarProps {
  readonly name: string;
  readonly detail: string;
  readonly seconds: readonly number[];
  readonly content: CompileContent;
  readonly slots: readonly number[];
  readonly only: number | null;
  readonly longest: number;
}

function Bar({ name, detail, seconds, content, slots, only, longest }: BarProps): JSX.Element {
  const [tip, setTip] = useState<{ readonly x: number; readonly width: number; readonly text: string } | null>(null);
  const sum = total(seconds);
  const parts = partsOf(seconds, longest);
  const said = (phase: number, part: number): string => `${t(content.phases[phase] ?? "")} ${formatSeconds(part)}, ${formatShare(part / sum)}`;
  return (
    <div class="phase-bar">
      <span class="phase-name" title={`${name} ${detail}`}>
        <code>{name}</code> <span>{detail}</span>
      </span>
      <svg
        class="phase-track"
        role="img"
        aria-label={`${name}: ${parts.map((one) => said(one.phase, one.seconds)).join("; ")}`}
        onPointerLeave={() => setTip(null)}
      >
        {parts.map(({ phase, start, end, seconds: part }) => (
          <rect
            key={phase}
            class={`segment phase-${slots[phase] ?? 9}${only !== null && only !== phase ? " pale" : ""}`}
            x={`${start * 100}%`}
            width={`${Math.max((end - start) * 100, 0.05)}%`}
            y={1}
            height={18}
            onPointerMove={(event) => {
              const box = event.currentTarget.ownerSVGElement?.getBoundingClientRect();
              if (box !== undefined) setTip({ x: event.clientX - box.left, width: box.width, text: said(phase, part) });
            }}
          />
        ))}
      </svg>
      <span class="phase-time">{formatSeconds(sum)}</span>
      {tip !== null && (
        <div class="phase-tip">
          <Tooltip x={tip.x} y={8} width={tip.width}>
            {tip.text}
          </Tooltip>
        </div>
      )}
    </div>
  );
}

function detailOf(one: CompilationRow): string {
  const parts = [`${one.place} ${one.function}`.trim()];
  if (one.outcome !== "compiled") parts.push(one.outcome);
  if (one.cache !== "unknown") parts.push(t("cache {outcome}", { outcome: t(one.cache) }));
  if (one.attempts > 1) parts.push(t("traced {count} times", { count: one.attempts }));
  if (one.is_resume) parts.push(t("rest behind a break"));
  if (one.spared_s !== null) parts.push(t("which spared {time}", { time: formatSeconds(one.spared_s) }));
  return parts.join(" · ");
}

function cacheText(content: CompileContent): string {
  const behind = Object.entries(content.background).map(([name, seconds]) => `${t(name)} ${formatSeconds(seconds)}`);
  const parts = [t("Compile caches: {state} ({hits} hits, {misses} misses).", { state: t(content.cache), hits: content.hits, misses: content.misses })];
  if (behind.length > 0) parts.push(t("On compile threads, beside the program: {what}.", { what: behind.join(", ") }));
  return parts.join(" ");
}

function total(seconds: readonly number[]): number {
  return seconds.reduce((sum, one) => sum + one, 0);
}
