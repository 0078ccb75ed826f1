/** What runs in production, as it happens. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatBytes, formatCount, formatSeconds, significant } from "../data/quantity";
import { t } from "../i18n/language";
import { clockTime, LatencyChart, RateChart } from "./FleetCharts";
import { type Link, listen } from "./feed";
import { callsOf, type Change, functionsOf, keyOf, type LiveNow, type Moment, type ProcessNow, processName, withMoments } from "./production";
import { Lamp } from "./Lamp";

const SILENT_S = 10;

export function Fleet(): JSX.Element {
  const [now, setNow] = useState<LiveNow | null>(null);
  const [moments, setMoments] = useState<readonly Moment[]>([]);
  const [link, setLink] = useState<Link>("lost");
  const [away, setAway] = useState("");
  const [chosen, choose] = useState<string | null>(null);
  useEffect(
    () =>
      listen(
        "/monitor/events",
        {
          live: (told) => {
            setNow(told as LiveNow);
            setAway("");
            setMoments((before) => withMoments(before, told as LiveNow));
          },
          away: (told) => setAway((told as { error: string }).error),
        },
        setLink,
      ),
    [],
  );
  const functions = now === null ? [] : functionsOf(now);
  const key = functions.some((one) => one.key === chosen) ? chosen : (functions[0]?.key ?? null);
  const shown = useMemo(() => moments.filter((moment) => keyOf(moment) === key), [moments, key]);
  return (
    <>
      <Lamp link={link} said={away} live="Live: a second behind" />
      {now !== null && now.processes.length === 0 && <p class="nothing">{t("No monitor has told anything here yet.")}</p>}
      {now !== null && key !== null && (
        <>
          {functions.length > 1 && (
            <div class="asked">
              <label>
                <span>{t("Function")}</span>
                <select value={key} onChange={(event) => choose(event.currentTarget.value)}>
                  {functions.map((one) => (
                    <option key={one.key} value={one.key}>
                      {one.name}
                    </option>
                  ))}
                </select>
              </label>
            </div>
          )}
          <Figures now={now} of={key} moments={shown} />
          <Alarms processes={now.processes} />
          <div class="pair">
            <LatencyChart moments={shown} />
            <RateChart moments={shown} />
          </div>
          <Processes now={now} />
          <Changes changes={now.changes} />
        </>
      )}
    </>
  );
}

function Figures({ now, of, moments }: { readonly now: LiveNow; readonly of: string; readonly moments: readonly Moment[] }): JSX.Element {
  const calls = callsOf(now, of);
  const sum = (value: (call: (typeof calls)[number]) => number): number => calls.reduce((total, call) => total + value(call), 0);
  const last = moments.at(-1);
  const failed = sum((call) => call.num_failed);
  const alarms = now.processes.reduce((total, process) => total + process.alarms.length, 0);
  const time = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : formatSeconds(value));
  return (
    <dl class="figures now">
      <One name="per second" value={significant(sum((call) => call.rate_hz))} />
      <One name="P50" value={time(last?.p50_s)} />
      <One name="P95" value={time(last?.p95_s)} />
      <One name="P99" value={time(last?.p99_s)} />
      <One name="Errors in a minute" value={formatCount(failed)} bad={failed > 0} />
      <One name="Under way" value={formatCount(sum((call) => call.in_flight))} />
      <One name="Processes" value={formatCount(now.processes.length)} />
      <One name="Alarms" value={formatCount(alarms)} bad={alarms > 0} />
    </dl>
  );
}

function One({ name, value, bad = false }: { readonly name: string; readonly value: string; readonly bad?: boolean }): JSX.Element {
  return (
    <div class={bad ? "bad" : ""}>
      <dt>{t(name)}</dt>
      <dd>
        <strong>{value}</strong>
      </dd>
    </div>
  );
}

/** What is wrong, and how far programs have stepped down; nothing while all is well. */
function Alarms({ processes }: { readonly processes: readonly ProcessNow[] }): JSX.Element | null {
  const found = processes.filter(({ alarms }) => alarms.length > 0);
  if (found.length === 0) return null;
  return (
    <ul class="alarms" role="alert">
      {found.map(({ source, alarms }) => (
        <li key={processName(source)}>
          <strong>{alarms.join(", ")}</strong> <span>{processName(source)}</span>
        </li>
      ))}
    </ul>
  );
}

const COLUMNS = ["Process", "Call", "per second", "P50", "P95", "P99", "Errors in a minute", "Under way", "Memory", "Ladder"] as const;

function Processes({ now }: { readonly now: LiveNow }): JSX.Element {
  return (
    <Listed title="Processes, over the last minute" columns={COLUMNS} words={2}>
      {now.processes.flatMap((process) =>
        process.calls.map((call, i) => (
          <tr key={`${processName(process.source)} ${call.call}`} class={process.alarms.length > 0 ? "alarming" : ""}>
            <td class="target">
              {i === 0 && processName(process.source)}
              {i === 0 && process.silent_s > SILENT_S && <em> {t("silent for {time}", { time: formatSeconds(process.silent_s) })}</em>}
            </td>
            <td class="target">{call.call}</td>
            <td>{significant(call.rate_hz)}</td>
            {[call.p50_s, call.p95_s, call.p99_s].map((value, place) => (
              <td key={place}>{value === null ? "–" : formatSeconds(value)}</td>
            ))}
            <td title={Object.entries(call.errors).map(([kind, count]) => `${kind} ${count}`).join(", ")}>{formatCount(call.num_failed)}</td>
            <td>{formatCount(call.in_flight)}</td>
            <td>{i === 0 && process.memory_bytes !== null && formatBytes(process.memory_bytes)}</td>
            <td>{i === 0 && Object.values(process.rungs).join(", ")}</td>
          </tr>
        )),
      )}
    </Listed>
  );
}

const KINDS: Readonly<Record<string, string>> = { alarm: "alarm", alarm_ended: "alarm over", degraded: "stepped down", recovered: "stepped up" };

function Changes({ changes }: { readonly changes: readonly Change[] }): JSX.Element | null {
  if (changes.length === 0) return null;
  return (
    <Listed title="What happened" columns={["Time", "What", "Process", "Evidence"]} words={4} name="what-happened">
      {changes.map(({ source, event }, i) => (
        <tr key={`${event.at_s} ${i}`}>
          <td>{clockTime(event.at_s)}</td>
          <td>{t(KINDS[event.event] ?? event.event)}</td>
          <td class="target">{processName(source)}</td>
          <td class="said">{saidOf(event)}</td>
        </tr>
      ))}
    </Listed>
  );
}

function saidOf({ call, fields }: Change["event"]): string {
  const { alarm, evidence, before, after, reason } = fields;
  if (alarm !== undefined) return `${alarm}: ${evidence ?? ""}`;
  if (after !== undefined) return `${before} → ${after}: ${reason ?? ""}`;
  return [call, ...Object.entries(fields).map(([name, value]) => `${name} ${value}`)].filter(Boolean).join(", ");
}

interface ListedProps {
  readonly title: string;
  readonly columns: readonly string[];
  /** How many columns from the left hold words, the others figures. */
  readonly words: number;
  readonly name?: string;
  readonly children: ComponentChildren;
}

function Listed({ title, columns, words, name = "", children }: ListedProps): JSX.Element {
  return (
    <section class={name} aria-label={t(title)}>
      <h2>{t(title)}</h2>
      <div class="scroll" role="region" aria-label={t(title)} tabIndex={0}>
        <table class={`of-live words-${words}`}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {t(column)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      </div>
    </section>
  );
}
