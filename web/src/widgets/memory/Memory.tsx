/** Where the bytes are: over time, at the peak, against what was predicted, in the allocator, and what stays. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { formatBytes } from "../../data/quantity";
import { t } from "../../i18n/language";
import { Figure } from "../Figure";
import { Loaded } from "../Loaded";
import type { WidgetProps } from "../widget";
import { Bars, type Whole } from "./Bars";
import { Course } from "./Course";
import { Held } from "./Held";
import { Leak } from "./Leak";
import { Ledger } from "./Ledger";
import type { Bar, MemoryPart, MemoryView } from "./model";

const PEAKS_HOW =
  "Each bar is a peak, and its parts are the categories at that instant. What is predicted was computed on tensors without data: nothing of it was run.";
const PEAKS_CHANGE = "The peaks may fall into different phases: a category that another setting makes smaller need not be what lowers the peak.";
const FRAGMENTS_HOW =
  "Each bar is what the allocator took from the device at one instant. In use: blocks with a tensor in them. Waiting for a stream: freed, but another stream may still use it. Split off: free, but beside something in use, so that it cannot be given back. Whole segments: free, and given back by empty_cache.";
const FRAGMENTS_CHANGE = "What counts is the peak and a failed request: at the end much is free because the work is done.";

export function Memory({ blocks, place, route }: WidgetProps): JSX.Element {
  return (
    <Loaded<MemoryView> blocks={blocks} name={place["block"] ?? ""}>
      {(view) => <Parts view={view} route={route} />}
    </Loaded>
  );
}

function Parts({ view, route }: { readonly view: MemoryView; readonly route: WidgetProps["route"] }): JSX.Element | null {
  const [chosen, setChosen] = useState(0);
  const part = view.parts[chosen];
  if (part === undefined) return null;
  return (
    <div class="memory">
      {view.parts.length > 1 && (
        <p class="tools">
          <label>{t("Device")} <select value={String(chosen)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
            {view.parts.map(({ label, peak_said }, i) => <option key={i} value={String(i)}>{label}: {peak_said}</option>)}
          </select></label>
        </p>
      )}
      {part.course === null
        ? <LedgerOnly part={part} />
        : <Course key={chosen} part={part} course={part.course} route={route} />}
      <Held key={`held-${chosen}`} part={part} route={route} />
      {part.leak !== null && <Leak leak={part.leak} />}
      {part.peaks.length > 0 && (
        <Figure title="The peak, measured and predicted" how={PEAKS_HOW} change={PEAKS_CHANGE}>
          <Bars wholes={part.peaks.map(wholeOf)} format={formatBytes} />
        </Figure>
      )}
      {part.fragments.length > 0 && (
        <Figure title="How the allocator's memory was used" how={FRAGMENTS_HOW} change={FRAGMENTS_CHANGE}>
          <Bars wholes={part.fragments.map(wholeOf)} format={formatBytes} />
        </Figure>
      )}
      <Missing sentences={part.missing} />
    </div>
  );
}

function LedgerOnly({ part }: { readonly part: MemoryPart }): JSX.Element {
  return (
    <Figure title="The ledger at the peak" how="What was alive at the instant of the peak; the categories add up to it.">
      <Ledger part={part} />
    </Figure>
  );
}

/** What the record does not hold. */
export function Missing({ sentences }: { readonly sentences: readonly string[] }): JSX.Element | null {
  if (sentences.length === 0) return null;
  return (
    <details class="missing">
      <summary>{t("What this record does not hold")}</summary>
      <ul>{sentences.map((sentence) => <li key={sentence}>{t(sentence)}</li>)}</ul>
    </details>
  );
}

function wholeOf({ label, note, total_bytes, pieces }: Bar): Whole {
  return { label, note, total: total_bytes, pieces: pieces.map(({ name, slot, bytes }) => ({ name, slot, value: bytes })) };
}
